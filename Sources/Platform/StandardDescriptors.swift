import Glibc

/// Standard input, output and error, which may be closed when the process starts. The next file or socket would get their
/// numbers, and receive the lines of the log.
public enum StandardDescriptors {
  /// Opens /dev/null for those that are closed, once. To be called first, before anything is opened.
  /// - Returns: the numbers of those that were closed.
  @discardableResult public static func fill() -> [Int32] { closed }

  /// The numbers that were closed when this process started.
  public static let closed: [Int32] = {
    var found: [Int32] = []
    // open returns the lowest free number: in this order each descriptor gets its own
    for fd in 0...2 as ClosedRange<Int32> where fcntl(fd, F_GETFD) < 0 && errno == EBADF {
      found.append(fd)
      if open("/dev/null", O_RDWR) != fd { return found }
    }
    return found
  }()
}
