#pragma once
#include <stddef.h>
#include <stdint.h>

// libFuzzer's loop, from the compiler's run-time library (https://llvm.org/docs/LibFuzzer.html).
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*run_one)(const uint8_t *data, size_t size));
