#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "include/CSystemFiles.h"

#ifdef __linux__
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

int c_system_files_punch(int file_descriptor, off_t offset, off_t count) {
    return fallocate(file_descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, count);
}

off_t c_system_files_next_data(int file_descriptor, off_t offset) {
    return lseek(file_descriptor, offset, SEEK_DATA);
}

off_t c_system_files_next_hole(int file_descriptor, off_t offset) {
    return lseek(file_descriptor, offset, SEEK_HOLE);
}

ssize_t c_system_files_read_now(int file_descriptor, void *buffer, size_t count, off_t offset) {
    struct iovec whole = {.iov_base = buffer, .iov_len = count};
    return preadv2(file_descriptor, &whole, 1, offset, RWF_NOWAIT);
}

int c_system_files_has_aes(void) {
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_cpu_supports("aes") != 0;
#elif defined(__aarch64__)
    return (getauxval(AT_HWCAP) & (1UL << 3)) != 0; // HWCAP_AES
#else
    return 0;
#endif
}
#endif
