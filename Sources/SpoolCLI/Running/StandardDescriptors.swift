import Foundation

/// Standard input, output and error, where whoever started the command has closed one.
enum StandardDescriptors {
    /// Puts something in the places of those that are closed: the next file that is opened would get there, and be
    /// written to in place of the terminal. Nothing can be written to what is put there. To be called before anything
    /// is opened.
    static func fill() {
        for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
        where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
            // It gets the lowest free number, which is this one. Without /dev/null the places stay free.
            _ = open("/dev/null", O_RDONLY)
        }
    }
}
