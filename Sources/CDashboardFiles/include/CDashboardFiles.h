#ifndef C_DASHBOARD_FILES_H
#define C_DASHBOARD_FILES_H

#include <stddef.h>

/// A file of the live page, which the compiler has embedded.
struct DashboardFileBytes {
    const char *name;
    const unsigned char *bytes;
    size_t count;
};

/// Returns the file with the given index, or NULL after the last one.
const struct DashboardFileBytes *dashboard_file(size_t index);

#endif
