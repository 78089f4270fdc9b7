import BenchKit
import CBenchNet
import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineSRTP
import TrunklineSTUN

/// The cost of a datagram without a session for the media thread, system calls included: at the app's port and at a trunk leg's,
/// in bursts of 64 as at the limit, beside two silent calls. A datagram that wakes a sleeping thread costs a wake-up in addition.
struct StrangerRows {
  static let name = "strangers: CPU of the media thread for one datagram"
  static let attempts = "strangers: share of a core for the ClientHellos that are answered"
  static let burst = 64
  /// `Limits.attemptsOfAllPerSecond` of MediaThreads: beyond each leg's first.
  private static let attemptsPerSecond = 800
  let bench: Bench
  let cores: Cores
  init(_ bench: Bench, _ cores: Cores) { (self.bench, self.cores) = (bench, cores) }

  private struct Kind {
    var name: String
    var toTrunk = false
    /// To the port of the call whose trunk leg has SRTP.
    var isProtected = false
    /// Sent from the peer's own address.
    var isSpoofed = false
    var bytes: [UInt8]
  }

  func run() throws {
    if bench.wants(Self.attempts) { try runAttempts() }
    guard bench.wants(Self.name) else { return }
    let alone = bench.isSmall ? 0 : try oneByOne()
    let test = try PlaneUnderTest(cores.inBatches)
    let (plain, secured) = (try CallPair(0), try CallPair(1))
    try test.connect([plain, secured], app: .pcmu)
    let key = SRTPMasterKey(key: [UInt8](repeating: 1, count: 16), salt: [UInt8](repeating: 2, count: 14))
    test.setTrunk(plain, at: 0) { $0.sourcePolicy = .strict }
    test.setTrunk(secured, at: 1) {
      $0.sourcePolicy = .symmetric
      $0.remote = SocketAddress(IPAddress(192, 0, 2, 1), 9)
      $0.peers = (1...200).compactMap { IPNetwork("198.51.100.\($0)") }
      $0.protection = TrunkProtection(profile: .aes128CM_HMAC_SHA1_80, ours: key, theirs: key)
    }
    var port: UInt16 = 0
    let socket = bn_udp(&port)
    guard socket >= 0 else { throw BenchError(text: "a socket: errno \(-socket)") }
    defer { bn_close(socket) }
    var worst = 0.0
    var notes: [String] = []
    for kind in try kinds() {
      bench.progress("strangers: \(kind.name)")
      let pair = kind.isProtected ? secured : plain
      let from = kind.isSpoofed ? pair.app : socket
      let cost = measure(test, from, kind.bytes, to: kind.toTrunk ? pair.trunkRemote : pair.appRemote)
      worst = max(worst, cost)
      notes.append("\(kind.name) \(fixed(cost, 2))")
    }
    bench.add(
      BenchRow(
        Self.name, unit: "µs", ours: BenchFigure("ours", worst), goal: .atMost(2),
        note: "the worst of: " + notes.joined(separator: ", ") + "; junk that wakes the thread each time \(fixed(alone, 2))"))
    test.endCalls()
  }

  /// The thread sleeps before each datagram.
  private func oneByOne() throws -> Double {
    let (test, pair) = (try PlaneUnderTest(cores), try CallPair(2))
    try test.connect([pair], app: .pcmu)
    defer { test.endCalls() }
    return measure(test, pair.trunk, [0xc5, 1, 2, 3], to: pair.appRemote, burst: 1)
  }

  /// The cost of our half of a handshake up to the client's answer, which a stranger never sends.
  private func runAttempts() throws {
    let (server, client) = (try DTLSIdentity(), try DTLSIdentity())
    let count = bench.isSmall ? 50 : 1_000
    var hellos: [[UInt8]] = []
    for _ in 0..<count {
      var association = try DTLSAssociation(.client, identity: client)
      association.start()
      association.drain { hellos.append(Array($0)) }
    }
    bench.progress("strangers: \(count) ClientHellos")
    let start = cpuNanoseconds()
    for hello in hellos {
      var association = try DTLSAssociation(.server, identity: server)
      hello.withUnsafeBytes { association.receive($0) }
      association.drain { _ in }
    }
    let each = Double(cpuNanoseconds() - start) / Double(hellos.count) / 1_000
    bench.add(
      BenchRow(
        Self.attempts, unit: "%", ours: BenchFigure("ours", each * Double(Self.attemptsPerSecond) / 10_000), goal: .atMost(20),
        note: "\(fixed(each, 0)) µs each, \(Self.attemptsPerSecond) a second"))
  }

  /// µs of the media thread's CPU for each datagram.
  private func measure(_ test: PlaneUnderTest, _ socket: Int32, _ bytes: [UInt8], to port: UInt16, burst: Int = Self.burst)
    -> Double
  {
    let total = bench.isSmall ? 2_000 : 40_000
    bn_pause(250_000_000)  // until the thread has published its CPU time
    let (idle, before, from) = (test.cpuSeconds(of: "media-0"), test.received, MonotonicClock.now())
    var sent = 0
    while sent < total {
      for _ in 0..<burst { _ = bn_send(socket, bytes, bytes.count, port) }
      sent += burst
      let end = MonotonicClock.now() + .milliseconds(100)
      while test.received < before + sent, MonotonicClock.now() < end { bn_pause(20_000) }
    }
    bn_pause(250_000_000)
    let (used, length) = (test.cpuSeconds(of: "media-0") - idle, MonotonicClock.now() - from)
    let received = max(1, test.received - before)
    // Without the cost of the calls' ticks.
    let (quiet, start) = (test.cpuSeconds(of: "media-0"), MonotonicClock.now())
    bn_pause(500_000_000)
    let ticks = (test.cpuSeconds(of: "media-0") - quiet) / (MonotonicClock.now() - start).inSeconds
    return max(0, used - ticks * length.inSeconds) / Double(received) * 1e6
  }

  private func kinds() throws -> [Kind] {
    var random = SplitMix64(seed: 5)
    let junk = [0xc5] + (0..<171).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    let rtp: [UInt8] = [0x80, 0, 0, 1, 0, 0, 0, 1, 0, 0, 9, 9] + junk.prefix(170)
    let rtcp: [UInt8] = [0x80, 200, 0, 6, 0, 0, 9, 9] + junk.prefix(34)
    let hello: [UInt8] =
      [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 62, 1, 0, 0, 50, 0, 0, 0, 0, 0, 0, 0, 50, 0xfe, 0xfd] + junk.prefix(48)
    return [
      Kind(name: "junk to the app's port", bytes: junk), Kind(name: "SRTP", bytes: rtp), Kind(name: "SRTCP", bytes: rtcp),
      Kind(name: "DTLS", bytes: hello), Kind(name: "STUN with an unknown ufrag", bytes: try check("none", "wrong")),
      Kind(name: "STUN with a wrong password", bytes: try check("gw1", "wrong")),
      Kind(name: "STUN cut short", bytes: Array(try check("gw1", "wrong").dropLast(8))),
      Kind(name: "SRTP from the app's address", isSpoofed: true, bytes: rtp),
      Kind(name: "ClientHello from the app's address", isSpoofed: true, bytes: hello),
      Kind(name: "junk to a trunk leg", toTrunk: true, bytes: junk), Kind(name: "RTP to a trunk leg", toTrunk: true, bytes: rtp),
      Kind(name: "SRTP to a protected trunk leg with 200 peers", toTrunk: true, isProtected: true, bytes: rtp),
    ]
  }

  private func check(_ ufrag: String, _ password: String) throws -> [UInt8] {
    var room = [UInt8](repeating: 0, count: 256)
    let count = room.withUnsafeMutableBytes { buffer in
      var writer = STUNWriter(.request, transaction: TransactionID(high: 1, low: 5), into: buffer)
      writer.addUsername(recipient: Array(ufrag.utf8), sender: Array("app".utf8))
      writer.addPriority(100)
      writer.addControlling(tieBreaker: 5)
      writer.addIntegrity(IntegrityKey(password: password))
      writer.addFingerprint()
      return writer.finish() ?? 0
    }
    return Array(room[..<count])
  }
}
