import TestSockets
import TrunklineAppProtocol

extension TestSocket {
  func send(_ frame: ClientFrame) { write(Self.frame(1, frame.encoded())) }

  /// The next message of the gateway, without pings and acks; nil at a close or the end.
  func message() -> ServerFrame? {
    while true {
      switch next() {
      case .text(let text):
        guard let frame = try? ServerFrame(decoding: Array(text.utf8)) else { return nil }
        if frame.body == .message(.ack) { continue }
        return frame
      case .ping: continue
      case .close, .end, .timeout: return nil
      }
    }
  }
}
