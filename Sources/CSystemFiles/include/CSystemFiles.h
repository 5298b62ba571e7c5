#ifndef C_SYSTEM_FILES_H
#define C_SYSTEM_FILES_H

// Linux functions for files that Swift's Glibc module does not export. Other systems have their own functions.

#include <sys/types.h>

/// Frees the file's blocks in [offset, offset + count) without changing the file's size, by fallocate(2) with
/// FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE. Whole blocks of the file system are freed, and the rest of the range is
/// zeroed. Returns 0, or -1 with errno set.
int c_system_files_punch(int file_descriptor, off_t offset, off_t count);

/// Returns the first offset at or after `offset` that contains data, by lseek(2) with SEEK_DATA. If there is none,
/// returns -1 with ENXIO. This moves the descriptor's file offset, which pread and pwrite do not use.
off_t c_system_files_next_data(int file_descriptor, off_t offset);

/// Returns the first offset at or after `offset` that is in a sparse hole, by lseek(2) with SEEK_HOLE. The end of the
/// file counts as a sparse hole.
off_t c_system_files_next_hole(int file_descriptor, off_t offset);

/// Reads bytes that are in the page cache, without disk access, by preadv2(2) with RWF_NOWAIT. The function may read
/// fewer than `count` bytes. Returns -1 with EAGAIN if the disk would be needed, with EOPNOTSUPP if the file system
/// does not support this (tmpfs before Linux 6.6), or with ENOSYS on kernels before 4.14.
ssize_t c_system_files_read_now(int file_descriptor, void *buffer, size_t count, off_t offset);

/// Returns whether the processor has AES instructions.
int c_system_files_has_aes(void);

#endif
