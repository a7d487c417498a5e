/*
 * Preload this into a server in which only the extension is built with the address sanitizer. The
 * sanitizer's run-time library arrives with the extension, too late to see the jumps by which the
 * server's errors leave functions. This clears the marks of those functions on the stack; otherwise
 * later users of the stack seem to touch foreign memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdlib.h>

typedef void (*jump)(sigjmp_buf, int) __attribute__((noreturn));

static __attribute__((noreturn)) void clear_and_jump(const char* name, sigjmp_buf where, int value) {
    void (*clear)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "__asan_handle_no_return");
    jump next = (jump)dlsym(RTLD_NEXT, name);
    if (clear != NULL)
        clear();
    if (next != NULL)
        next(where, value);
    abort();
}

void siglongjmp(sigjmp_buf where, int value) {
    clear_and_jump("siglongjmp", where, value);
}

/* The same in programs built with _FORTIFY_SOURCE. */
void __longjmp_chk(sigjmp_buf where, int value);
void __longjmp_chk(sigjmp_buf where, int value) {
    clear_and_jump("__longjmp_chk", where, value);
}
