#ifndef C_FILE_HOLES_H
#define C_FILE_HOLES_H

// What Swift's Glibc module does not show of Linux's sparse files. Linux only; other systems have their own calls.

#include <sys/types.h>

/// Frees the file's blocks in [offset, offset + count) and leaves the file's size as it is: fallocate(2) with
/// FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE. Whole filesystem blocks are freed, the rest of the range is zeroed.
/// Returns 0, or -1 with errno set.
int c_file_holes_punch(int file_descriptor, off_t offset, off_t count);

/// The first offset at or after `offset` that holds data: lseek(2) with SEEK_DATA. -1 with ENXIO: none up to the end.
/// Moves the descriptor's file offset, which pread and pwrite do not use.
off_t c_file_holes_next_data(int file_descriptor, off_t offset);

/// The first offset at or after `offset` that lies in a hole; the end of the file counts as one: SEEK_HOLE.
off_t c_file_holes_next_hole(int file_descriptor, off_t offset);

#endif
