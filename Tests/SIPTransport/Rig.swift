import Glibc
import Logging
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs
import TrunklineSIPTransport

/// SIP sockets on a loop of their own thread, and what they delivered.
final class Rig: Sendable {
  let loop: EventLoop
  /// The addresses and counters of the sockets.
  let sockets: Bound
  private let held: LoopBound<SIPSockets>
  private let inputs = Shared()
  private let thread: NamedThread

  struct Bound: Sendable {
    let udpAddresses: [SocketAddress]
    let tcpAddresses: [SocketAddress]
    let tlsAddresses: [SocketAddress]
    let metrics: [MetricFamily]
  }

  private final class Shared: Sendable {
    let list = Mutex<[UserAgent.Input]>([])
    let event: EventDescriptor?
    init() { event = try? EventDescriptor() }
  }

  init(
    udp: [SocketAddress] = [SocketAddress(.loopback, 0)], tcp: [SocketAddress] = [SocketAddress(.loopback, 0)],
    tls: [SocketAddress] = [], peers: [String] = ["127.0.0.1/32", "::1/128"], anyPeer: String? = nil
  ) throws {
    loop = try EventLoop(name: "sip-test")
    let inputs = inputs
    let made = try SIPSockets(
      loop: loop, udp: udp, tcp: tcp, tls: tls, trunks: Self.list(peers, anyPeer: anyPeer),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) { input in
      inputs.list.withLock { $0.append(input) }
      inputs.event?.signal()
    }
    sockets = Bound(
      udpAddresses: made.udpAddresses, tcpAddresses: made.tcpAddresses, tlsAddresses: made.tlsAddresses, metrics: made.metrics)
    held = LoopBound(made, to: loop)
    let loop = loop
    thread = try NamedThread.start(name: "sip-test") { loop.run() }
  }

  static func list(_ peers: [String], anyPeer: String? = nil) -> AllowList {
    var list = AllowList([("carrier", peers.compactMap { IPNetwork($0) })])
    list.anyPeer = anyPeer
    return list
  }

  /// Ends the loop; every test calls it, so that no thread is left.
  func stop() {
    held.post { $0.close() }
    loop.stop()
    thread.join()
  }

  /// Runs on the loop's thread and waits for it.
  func onLoop<R: Sendable>(_ body: @escaping @Sendable (SIPSockets) -> R) throws -> R {
    let done = try EventDescriptor()
    let result = Mutex<R?>(nil)
    let box = Box(result: result)
    held.post { sockets in
      let value = body(sockets)
      box.result.withLock { $0 = value }
      done.signal()
    }
    #expect(done.wait(milliseconds: 5_000))
    let value = box.result.withLock { $0 }
    return try #require(value)
  }

  func flow(_ transport: TransportProtocol, toward remote: SocketAddress) throws -> Flow? {
    try onLoop { $0.flow(transport, toward: remote) }
  }

  private final class Box<R: Sendable>: Sendable {
    let result: Mutex<R?>
    init(result: consuming Mutex<R?>) { self.result = result }
  }

  func send(_ text: String, _ flow: Flow) {
    send(Array(text.utf8), flow)
  }

  func send(_ bytes: [UInt8], _ flow: Flow) { held.post { $0.send(.init(bytes: bytes, flow: flow)) } }

  /// Waits until `count` inputs have come, at most 5 s, and returns all.
  func wait(_ count: Int) -> [UserAgent.Input] {
    let deadline = MonotonicClock.now() + .seconds(5)
    while MonotonicClock.now() < deadline {
      inputs.event?.clear()
      let now = inputs.list.withLock { $0 }
      if now.count >= count { return now }
      _ = inputs.event?.wait(milliseconds: 100)
    }
    return inputs.list.withLock { $0 }
  }

  func messages(_ count: Int) -> [(text: String, flow: Flow, trunk: String)] {
    wait(count).compactMap { input in
      guard case .received(let bytes, let flow, let trunk) = input else { return nil }
      return (String(decoding: bytes, as: UTF8.self), flow, trunk)
    }
  }

  /// What peers did, of the flows that failed; a failure of which nothing is known is nil.
  var peerFailures: [UserAgent.PeerFailure?] {
    inputs.list.withLock { inputs in
      inputs.compactMap { if case .transportFailed(_, let peer, _) = $0 { Optional(peer) } else { nil } }
    }
  }

  func failures(_ count: Int) -> [Flow] {
    wait(count).compactMap { if case .transportFailed(let flow, _, _) = $0 { flow } else { nil } }
  }

  func metric(_ name: String, _ labels: String...) -> Int64? {
    for family in sockets.metrics where family.name == name {
      for sample in family.snapshot() where sample.labels == labels {
        if case .integer(let value) = sample.value { return value }
      }
    }
    return nil
  }

  /// Waits until a metric has a value, at most 5 s.
  func reaches(_ value: Int64, _ name: String, _ labels: String...) -> Bool {
    let deadline = MonotonicClock.now() + .seconds(5)
    while MonotonicClock.now() < deadline {
      for family in sockets.metrics where family.name == name {
        for sample in family.snapshot() where sample.labels == labels {
          if case .integer(value) = sample.value { return true }
        }
      }
      sched_yield()
    }
    return false
  }
}

/// The other end: a UDP or TCP peer on the test's own thread.
func ready(_ fd: Int32, _ events: Int32 = POLLIN, milliseconds: Int32 = 5_000) -> Bool {
  var entry = pollfd(fd: fd, events: Int16(events), revents: 0)
  return poll(&entry, 1, milliseconds) > 0
}

extension UDPSocket {
  func receive(milliseconds: Int32 = 5_000) throws -> (text: String, from: SocketAddress)? {
    guard ready(fd, milliseconds: milliseconds) else { return nil }
    var buffer = [UInt8](repeating: 0, count: 65_536)
    guard let (count, from) = try buffer.withUnsafeMutableBytes({ try receive(into: $0) }) else { return nil }
    return (String(decoding: buffer.prefix(count), as: UTF8.self), from)
  }
  func say(_ text: String, to address: SocketAddress) throws { _ = try send(Array(text.utf8), to: address) }
}

extension TCPSocket {
  /// Reads until `count` bytes are here, or the peer closed (then what came before).
  func receive(_ count: Int) throws -> String {
    var all: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while all.count < count, ready(fd) {
      guard case .bytes(let read) = try buffer.withUnsafeMutableBytes({ try read(into: $0) }) else { break }
      all += buffer.prefix(read)
    }
    return String(decoding: all, as: UTF8.self)
  }
  func say(_ text: String) throws {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty, ready(fd, POLLOUT) { rest = rest.dropFirst(try rest.withUnsafeBytes { try write($0) }) }
  }
  /// True once the peer has closed.
  func isClosed() throws -> Bool {
    guard ready(fd) else { return false }
    var buffer = [UInt8](repeating: 0, count: 10)
    do { return try buffer.withUnsafeMutableBytes { try read(into: $0) } == .closed } catch { return true }
  }
}

let options = "OPTIONS sip:a@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1\r\nContent-Length: 0\r\n\r\n"
let ok = "SIP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n"
