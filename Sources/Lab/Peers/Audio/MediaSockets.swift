import TrunklineBytes
import TrunklinePlatform

/// A peer's sockets for RTP and, one port above, RTCP (RFC 3550 §11).
enum MediaPorts {
  private static let attempts = 200

  /// An even port of 20000…39998 and the next, both free; tries another pair while one is in use. Throws the error of `bind`.
  static func bindPair(_ address: IPAddress, _ random: RandomSource) throws(SystemError) -> (UDPSocket, UDPSocket) {
    for attempt in 0... {
      let port = UInt16(20_000 + 2 * (random.next() % 10_000))
      do {
        let socket = try UDPSocket(bind: SocketAddress(address, port))
        return (socket, try UDPSocket(bind: SocketAddress(address, port + 1)))
      } catch {
        if attempt == attempts || !error.isAddressInUse { throw error }
      }
    }
    throw SystemError("bind udp")
  }
}

extension UDPSocket {
  /// Reads all datagrams that wait; those above 2048 octets are cut.
  func receiveAll(_ body: (UnsafeRawBufferPointer, _ from: SocketAddress) -> Void = { _, _ in }) {
    withUnsafeTemporaryAllocation(byteCount: 2048, alignment: 8) { buffer in
      while let (count, source) = (try? receive(into: buffer)) ?? nil {
        body(UnsafeRawBufferPointer(rebasing: buffer[..<min(count, buffer.count)]), source)
      }
    }
  }
}

/// A peer cannot be set up on this machine.
public struct PeerSetupError: Error, CustomStringConvertible { public let description: String }
