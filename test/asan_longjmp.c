/*
 * To be preloaded into a server whose extension alone is built with the address sanitizer. The
 * run-time library of the sanitizer comes with the extension then, too late to see the jumps with
 * which the server's errors leave functions. What these had marked on the stack must be cleared, or
 * the next ones to use it seem to touch what is not theirs.
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
