/*
 * Preload this into a server in which only the extension is built with the address sanitizer. The
 * sanitizer's run-time library loads with the extension, too late to intercept siglongjmp(), with
 * which PostgreSQL handles errors. So this code clears the sanitizer's marks on the stack before
 * each jump. Otherwise later functions on the stack would seem to touch foreign memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdlib.h>

typedef void (*jump)(sigjmp_buf, int) __attribute__((noreturn));

static __attribute__((noreturn)) void clear_and_jump(const char* name, sigjmp_buf where,
                                                     int value) {
    void (*clear)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "__asan_handle_no_return");
    jump next = (jump)dlsym(RTLD_NEXT, name);
    if (clear != NULL) clear();
    if (next != NULL) next(where, value);
    abort();
}

void siglongjmp(sigjmp_buf where, int value) { clear_and_jump("siglongjmp", where, value); }

/* Programs built with _FORTIFY_SOURCE call this instead of siglongjmp(). */
void __longjmp_chk(sigjmp_buf where, int value);
void __longjmp_chk(sigjmp_buf where, int value) { clear_and_jump("__longjmp_chk", where, value); }
