#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "include/CFileHoles.h"

#ifdef __linux__
#include <fcntl.h>
#include <unistd.h>

int c_file_holes_punch(int file_descriptor, off_t offset, off_t count) {
    return fallocate(file_descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, count);
}

off_t c_file_holes_next_data(int file_descriptor, off_t offset) {
    return lseek(file_descriptor, offset, SEEK_DATA);
}

off_t c_file_holes_next_hole(int file_descriptor, off_t offset) {
    return lseek(file_descriptor, offset, SEEK_HOLE);
}
#endif
