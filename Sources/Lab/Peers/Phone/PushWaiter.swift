import Glibc
import Synchronization
public import TrunklineBytes
import TrunklineClient
import TrunklinePlatform

/// The operating system of a killed app: waits for pushes in place of the app. Blocks its thread.
public final class PushWaiter: Sendable {
  public enum Source: Sendable {
    /// `trunkline-lab push-sandbox --apps`.
    case sandbox(SocketAddress, token: String)
    /// Lines of JSON on standard input, from any other push service.
    case standardInput
  }
  public struct Failure: Error, CustomStringConvertible { public let description: String }

  private let fd: Int32
  private let isOwn: Bool
  private let isStopped = Atomic<Bool>(false)
  private let rest = Mutex<[UInt8]>([])

  /// Connects; a later push is not lost.
  public init(_ source: Source) throws {
    switch source {
    case .standardInput: (fd, isOwn) = (0, false)
    case .sandbox(let address, let token):
      let made = socket(
        address.ip.family == .v4 ? AF_INET : AF_INET6, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
      guard made >= 0, address.withSockaddr({ connect(made, $0, $1) }) == 0 else {
        let why = String(cString: strerror(errno))
        if made >= 0 { close(made) }
        throw Failure(
          description:
            "cannot reach the push sandbox's apps port \(address): \(why); start it with: trunkline-lab push-sandbox --apps \(address)"
        )
      }
      let line = Array("{\"token\":\"\(token)\"}\n".utf8)
      guard send(made, line, line.count, Int32(MSG_NOSIGNAL)) == line.count else {
        close(made)
        throw Failure(description: "the push sandbox at \(address) does not listen")
      }
      (fd, isOwn) = (made, true)
    }
  }

  deinit { if isOwn { close(fd) } }

  /// Any thread: makes `next` return nil.
  public func stop() {
    isStopped.store(true, ordering: .relaxed)
    if isOwn { shutdown(fd, Int32(SHUT_RDWR)) }
  }

  /// Waits for a push, as the received JSON; nil once no more can arrive. Lines that are no push are skipped.
  public func next() -> [UInt8]? {
    while let line = nextLine() {
      if PushPayload(json: line) != nil { return line }
    }
    return nil
  }

  /// Waits for any line; nil once no more can arrive.
  public func nextLine() -> [UInt8]? {
    while !isStopped.load(ordering: .relaxed) {
      if let line = popLine() { return line }
      var poll = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
      guard Glibc.poll(&poll, 1, 200) > 0 else { continue }
      var bytes = [UInt8](repeating: 0, count: 4_096)
      let count = read(fd, &bytes, bytes.count)
      guard count > 0, rest.withLock({ $0.count < Self.lineBytes }) else { return nil }
      rest.withLock { $0 += bytes[..<count] }
    }
    return nil
  }

  private func popLine() -> [UInt8]? {
    rest.withLock { rest in
      guard let end = rest.firstIndex(of: 10) else { return nil }
      defer { rest.removeSubrange(...end) }
      return Array(rest[..<end])
    }
  }

  private static let lineBytes = 65_536
}
