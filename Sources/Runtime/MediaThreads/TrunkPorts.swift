import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// The two sockets of one call's trunk leg: RTP on an even port, RTCP on the next (RFC 3550 §11). Closed when the object is
/// released.
final class TrunkSockets: Sendable {
  let rtp: UDPSocket
  let rtcp: UDPSocket
  private let ports: TrunkPorts

  init(rtp: UDPSocket, rtcp: UDPSocket, ports: TrunkPorts) { (self.rtp, self.rtcp, self.ports) = (rtp, rtcp, ports) }
  deinit { ports.release(rtp.localAddress) }
}

/// Hands out port pairs of `media.trunk_ports`: a random free one, so that the next call's cannot be guessed, and a released one
/// as late as possible. Any thread.
final class TrunkPorts: Sendable {
  private struct State {
    var pools: [IPAddress: Pool] = [:]
    var used = 0
  }
  /// The pairs of one address, by number.
  private struct Pool {
    /// Pairs to draw from.
    private var ready: [UInt16]
    /// Released pairs, a ring as large as the range: the one released longest ago is at `oldest`.
    private var resting: [UInt16]
    private var oldest = 0
    private var restingCount = 0
    /// At least half of all are drawn from, while there are so many.
    private let least: Int

    init(pairs: Int) {
      ready = (0..<UInt16(truncatingIfNeeded: pairs)).map { $0 }
      resting = ready
      least = max(1, pairs / 2)
    }

    mutating func draw() -> UInt16? {
      while ready.count < least, restingCount > 0 {
        ready.append(resting[oldest])
        oldest = (oldest + 1) % resting.count
        restingCount = restingCount - 1
      }
      guard !ready.isEmpty else { return nil }
      ready.swapAt(Int.random(in: ready.indices), ready.count - 1)
      return ready.removeLast()
    }

    mutating func rest(_ pair: UInt16) {
      resting[(oldest + restingCount) % resting.count] = pair
      restingCount += 1
    }
  }
  private let first: Int
  private let pairs: Int
  private let state = Mutex(State())
  private let used = Atomic<Int>(0)

  init(_ range: ClosedRange<UInt16>) {
    first = (Int(range.lowerBound) + 1) & ~1
    pairs = max(0, (Int(range.upperBound) - first + 1) / 2)
  }

  /// Pairs in use now.
  var inUse: Int { used.load(ordering: .relaxed) }
  /// Pairs of `addresses` addresses, including those that other processes hold.
  func limit(addresses: Int) -> Int { pairs * addresses }
  /// No pair of `addresses` addresses is free; other processes' ports are not counted.
  func isExhausted(addresses: Int) -> Bool { inUse >= limit(addresses: addresses) }

  /// Binds a pair on `address`. A port that another process holds is skipped.
  func reserve(on address: IPAddress) throws(MediaReservationError) -> TrunkSockets {
    var held: [SocketAddress] = []
    defer { for candidate in held { release(candidate) } }
    while let candidate = draw(on: address) {
      do throws(SystemError) {
        let rtp = try UDPSocket(bind: candidate, receiveBufferBytes: Limits.trunkSocketBuffer, setting: "media.trunk_ports")
        let rtcp = try UDPSocket(bind: SocketAddress(address, candidate.port &+ 1), setting: "media.trunk_ports")
        return TrunkSockets(rtp: rtp, rtcp: rtcp, ports: self)
      } catch {
        held.append(candidate)
        if !error.isAddressInUse { throw .socket("\(error)") }
      }
    }
    throw .portsExhausted
  }

  /// Releases a drawn pair, by its RTP port.
  func release(_ address: SocketAddress) {
    state.withLock { state in
      state.pools[address.ip]?.rest(UInt16(truncatingIfNeeded: (Int(address.port) - first) / 2))
      state.used -= 1
      used.store(state.used, ordering: .relaxed)
    }
  }

  /// Drops the pool of `address`. If the address returns, pairs that are still in use there are skipped.
  func forget(_ address: IPAddress) { state.withLock { _ = $0.pools.removeValue(forKey: address) } }

  func draw(on address: IPAddress) -> SocketAddress? {
    state.withLock { state in
      guard let pair = state.pools[address, default: Pool(pairs: pairs)].draw() else { return nil }
      state.used += 1
      used.store(state.used, ordering: .relaxed)
      return SocketAddress(address, UInt16(truncatingIfNeeded: first + 2 * Int(pair)))
    }
  }
}
