import Foundation
import Synchronization
import TrunklineCallKit
import TrunklineClient

/// A gateway that is a round trip away: frames take half a round trip each way, a connection takes three whole ones (TCP, TLS
/// 1.3, the upgrade). The gateway's candidates become those of a relay with the same delay.
final class FarSockets: SocketConnector {
  private let sockets = WebSockets()
  private let milliseconds: Int
  private let relays = Mutex<[UInt16: FarRelay]>([:])

  init(roundTripMilliseconds: Int) { milliseconds = roundTripMilliseconds }

  func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket {
    let queue = DispatchQueue(label: "far socket")
    let socket = sockets.open(url) { [self] event in
      switch event {
      case .opened: queue.asyncAfter(deadline: .now() + Double(3 * milliseconds) / 1_000) { events(event) }
      case .received(let text):
        let moved = move(text)
        queue.asyncAfter(deadline: .now() + Double(milliseconds) / 2_000) { events(.received(moved)) }
      case .closed: queue.asyncAfter(deadline: .now() + Double(milliseconds) / 2_000) { events(event) }
      }
    }
    return FarSocket(socket: socket, queue: queue, seconds: Double(milliseconds) / 2_000)
  }

  func post(_ url: String, bearer: String, body: [UInt8]) { sockets.post(url, bearer: bearer, body: body) }

  private struct FarSocket: Socket {
    let socket: any Socket
    let queue: DispatchQueue
    let seconds: Double
    func send(_ text: [UInt8]) { queue.asyncAfter(deadline: .now() + seconds) { [socket] in socket.send(text) } }
    func close(_ code: UInt16) { queue.asyncAfter(deadline: .now() + seconds) { [socket] in socket.close(code) } }
  }

  /// Replaces the gateway's candidates by the relay's.
  private func move(_ text: [UInt8]) -> [UInt8] {
    let frame = String(decoding: text, as: UTF8.self)
    guard frame.contains("candidate:") else { return text }
    let moved = frame.replacing(/(candidate:\S+ \d+ (?i:udp) \d+ 127\.0\.0\.1 )(\d+)/) { match in
      "\(match.output.1)\(UInt16(match.output.2).flatMap { relay(to: $0) } ?? 9)"
    }
    return Array(moved.utf8)
  }

  private func relay(to port: UInt16) -> UInt16? {
    relays.withLock { relays in
      if relays[port] == nil { relays[port] = FarRelay(to: port, milliseconds: milliseconds / 2) }
      return relays[port]?.port
    }
  }
}
