#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "include/CSystemFiles.h"

#ifdef __linux__
#include <fcntl.h>
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
#endif
