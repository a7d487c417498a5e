/*
 * Batteries of TestU01 over the numbers on the standard input. A number has 64 bits, the most
 * significant byte first, and is two words of 32 bits to TestU01, the high one first.
 *
 *   testu01 BATTERY...
 *
 * BATTERY is smallcrush, or alphabit=BITS, of which each test reads BITS. A battery goes on where
 * the one before it stopped, and nothing is read twice. It is an error if the numbers end before
 * the batteries do.
 *
 * Prints TestU01's summary of each battery, then a line for each p-value with a verdict in
 * dieharder's words. WEAK is a p-value outside of [1e-3, 1 - 1e-3], which TestU01's summary names.
 * FAILED is one outside of [1e-10, 1 - 1e-10], which its authors call a clear failure.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <testu01/bbattery.h>
#include <testu01/swrite.h>
#include <testu01/unif01.h>

enum { kBufferWords = 1024 };

static uint64_t words_read;

static unsigned int next_word(void) {
    static uint32_t buffer[kBufferWords];
    const size_t at = words_read++ % kBufferWords;

    if (at == 0 && fread(buffer, sizeof buffer, 1, stdin) != 1) {
        fputs("testu01: the numbers ended before the tests did\n", stderr);
        exit(1);
    }
    return ntohl(buffer[at]);
}

static void run(const char* battery, unif01_Gen* generator) {
    double bits;

    if (strcmp(battery, "smallcrush") == 0)
        bbattery_SmallCrush(generator);
    else if (sscanf(battery, "alphabit=%lf", &bits) == 1)
        bbattery_Alphabit(generator, bits, 0, 32);
    else {
        fprintf(stderr, "testu01: there is no battery \"%s\"\n", battery);
        exit(2);
    }
}

/* TestU01 gives tests that were left out a p-value of -1. */
static const char* verdict(double p) {
    const double distance = p < 0.5 ? p : 1 - p;

    return p < 0 ? "NOT RUN" : distance < 1e-10 ? "FAILED" : distance < 1e-3 ? "WEAK" : "PASSED";
}

int main(int count, char** batteries) {
    char name[] = "standard input";
    unif01_Gen* generator = unif01_CreateExternGenBits(name, next_word);

    swrite_Basic = FALSE;
    for (int i = 1; i < count; i++) {
        const uint64_t before = words_read;

        run(batteries[i], generator);
        for (int test = 0; test < bbattery_NTests; test++)
            printf("%30s|%.10f| %s\n", bbattery_TestNames[test], bbattery_pVal[test],
                   verdict(bbattery_pVal[test]));
        printf("%s read %.2f GB\n", batteries[i], (double)(words_read - before) * 4 / 1e9);
        fflush(stdout);
    }
    unif01_DeleteExternGenBits(generator);
    return 0;
}
