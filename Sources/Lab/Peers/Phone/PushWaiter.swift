public import Bytes
import Glibc
import Platform
import Synchronization

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What a push tells an app that it wakes: payload version 1.
public struct ReceivedPush: Sendable, Equatable {
  public var call: Identifier
  /// `wss://…`: where to connect.
  public var gateway: String
  public var wake: Redacted<String>
  public var handle: String
  public var name: String
  /// Seconds since 1970; a hint only.
  public var expires: Int64?

  /// A line of the stand-in: `{"service":"apns","id":"…","payload":{…}}`, or a payload alone. Nil for anything else.
  public init?(line: some Sequence<UInt8>) {
    guard let any = try? JSONDecoder().decode(Envelope.self, from: Data(line)) else { return nil }
    let payload = any.payload ?? any.own
    guard let call = payload?.call.flatMap({ Identifier($0) }), let gateway = payload?.gw, let wake = payload?.wake, !wake.isEmpty
    else { return nil }
    (self.call, self.gateway, self.wake) = (call, gateway, Redacted(wake))
    handle = payload?.from?.h ?? payload?.from_h ?? ""
    name = payload?.from?.n ?? payload?.from_n ?? ""
    expires = payload?.exp
  }

  private struct Envelope: Decodable {
    var payload: Payload?
    var own: Payload?
    private enum CodingKeys: String, CodingKey { case payload }
    init(from decoder: any Decoder) throws {
      payload = try decoder.container(keyedBy: CodingKeys.self).decodeIfPresent(Payload.self, forKey: .payload)
      if payload == nil { own = try Payload(from: decoder) }
    }
  }

  /// FCM carries the same keys with strings only, the caller's flat.
  private struct Payload: Decodable {
    struct Caller: Decodable { var h, n: String? }
    var call, gw, wake, from_h, from_n: String?
    var from: Caller?
    var exp: Int64?
    private enum CodingKeys: String, CodingKey { case call, gw, wake, from, from_h, from_n, exp }
    init(from decoder: any Decoder) throws {
      let values = try decoder.container(keyedBy: CodingKeys.self)
      (call, gw) = (try values.decodeIfPresent(String.self, forKey: .call), try values.decodeIfPresent(String.self, forKey: .gw))
      wake = try values.decodeIfPresent(String.self, forKey: .wake)
      (from_h, from_n) = (
        try values.decodeIfPresent(String.self, forKey: .from_h), try values.decodeIfPresent(String.self, forKey: .from_n)
      )
      from = try? values.decodeIfPresent(Caller.self, forKey: .from)
      exp =
        (try? values.decodeIfPresent(Int64.self, forKey: .exp))
        ?? (try? values.decode(String.self, forKey: .exp)).flatMap { Int64($0) }
    }
  }
}

/// The operating system of a killed app: waits for pushes, so that the app need not. Blocks its thread.
public final class PushWaiter: Sendable {
  public enum Source: Sendable {
    /// `trunkline-lab push-sandbox --apps`.
    case sandbox(SocketAddress, token: String)
    /// Lines of JSON on standard input, of any other push service.
    case standardInput
  }
  public struct Failure: Error, CustomStringConvertible { public let description: String }

  private let fd: Int32
  private let isOwn: Bool
  private let isStopped = Atomic<Bool>(false)
  private let rest = Mutex<[UInt8]>([])

  /// Connects; what is pushed from now on is not lost.
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

  /// Any thread: `next` returns nil.
  public func stop() {
    isStopped.store(true, ordering: .relaxed)
    if isOwn { shutdown(fd, Int32(SHUT_RDWR)) }
  }

  /// Waits for a push; nil once there will be none. Lines that are no push are passed over.
  public func next() -> ReceivedPush? {
    while !isStopped.load(ordering: .relaxed) {
      if let line = takeLine() {
        if let push = ReceivedPush(line: line) { return push }
        continue
      }
      var poll = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
      guard Glibc.poll(&poll, 1, 200) > 0 else { continue }
      var bytes = [UInt8](repeating: 0, count: 4_096)
      let count = read(fd, &bytes, bytes.count)
      guard count > 0, rest.withLock({ $0.count < Self.lineBytes }) else { return nil }
      rest.withLock { $0 += bytes[..<count] }
    }
    return nil
  }

  private func takeLine() -> [UInt8]? {
    rest.withLock { rest in
      guard let end = rest.firstIndex(of: 10) else { return nil }
      defer { rest.removeSubrange(...end) }
      return Array(rest[..<end])
    }
  }

  private static let lineBytes = 65_536
}
