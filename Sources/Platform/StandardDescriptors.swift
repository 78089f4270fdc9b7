import Glibc

/// Standard input, output and error, which the parent process may have closed. The next file or socket would get their numbers, and the lines
/// of the log would go into it.
public enum StandardDescriptors {
  /// Opens /dev/null for each closed one, once. Call it first, before anything is opened.
  /// - Returns: the numbers of those that were closed.
  @discardableResult public static func fill() -> [Int32] { closed }

  /// Of this process, as it was started.
  public static let closed: [Int32] = {
    var found: [Int32] = []
    // the lowest free number is given: in this order each gets its own
    for fd in 0...2 as ClosedRange<Int32> where fcntl(fd, F_GETFD) < 0 && errno == EBADF {
      found.append(fd)
      if open("/dev/null", O_RDWR) != fd { return found }
    }
    return found
  }()
}
