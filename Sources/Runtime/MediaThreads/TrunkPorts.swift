import Bytes
import Platform
import Synchronization

/// The two sockets of one call's trunk leg: RTP on an even port, RTCP on the next (RFC 3550 §11). Closed when the object goes.
final class TrunkSockets: Sendable {
  let rtp: UDPSocket
  let rtcp: UDPSocket
  private let ports: TrunkPorts

  init(rtp: UDPSocket, rtcp: UDPSocket, ports: TrunkPorts) { (self.rtp, self.rtcp, self.ports) = (rtp, rtcp, ports) }
  deinit { ports.release(rtp.localAddress) }
}

/// Hands out port pairs of `media.trunk_ports`, round robin, so that a port rests before it is used again. Any thread.
final class TrunkPorts: Sendable {
  private struct State {
    var cursor = 0
    var used: Set<SocketAddress> = []
  }
  private let first: Int
  private let pairs: Int
  private let state = Mutex(State())
  private let taken = Atomic<Int>(0)

  init(_ range: ClosedRange<UInt16>) {
    first = (Int(range.lowerBound) + 1) & ~1
    pairs = max(0, (Int(range.upperBound) - first + 1) / 2)
  }

  /// Pairs in use now.
  var inUse: Int { state.withLock { $0.used.count } }

  /// No pair of `addresses` addresses is free, other processes' ports apart.
  func isExhausted(addresses: Int) -> Bool { taken.load(ordering: .relaxed) >= pairs * addresses }

  /// Binds a pair on `address`. A port that another process holds is passed over.
  func reserve(on address: IPAddress) throws(MediaReservationError) -> TrunkSockets {
    for _ in 0..<pairs {
      guard let candidate = next(on: address) else { throw .portsExhausted }
      do throws(SystemError) {
        let rtp = try UDPSocket(bind: candidate, receiveBufferBytes: Limits.trunkSocketBuffer, setting: "media.trunk_ports")
        let rtcp = try UDPSocket(bind: SocketAddress(address, candidate.port &+ 1), setting: "media.trunk_ports")
        return TrunkSockets(rtp: rtp, rtcp: rtcp, ports: self)
      } catch {
        release(candidate)
        if !error.isAddressInUse { throw .socket("\(error)") }
      }
    }
    throw .portsExhausted
  }

  func release(_ address: SocketAddress) {
    state.withLock { state in
      state.used.remove(address)
      taken.store(state.used.count, ordering: .relaxed)
    }
  }

  private func next(on address: IPAddress) -> SocketAddress? {
    state.withLock { state in
      for _ in 0..<pairs {
        let port = UInt16(truncatingIfNeeded: first + 2 * state.cursor)
        state.cursor = (state.cursor + 1) % pairs
        let candidate = SocketAddress(address, port)
        if state.used.insert(candidate).inserted {
          taken.store(state.used.count, ordering: .relaxed)
          return candidate
        }
      }
      return nil
    }
  }
}
