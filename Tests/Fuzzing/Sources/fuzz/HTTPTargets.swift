import HTTP
import WebSocket

/// The first byte chooses where the stream is cut: requests in front of a refusal must not depend on it.
@Sendable func fuzzHTTP(_ bytes: [UInt8]) {
  guard let first = bytes.first else { return }
  let stream = Array(bytes.dropFirst())
  func requests(_ step: Int) -> [RequestReader.Request] {
    // every other request gives its body out as it comes: it is the same body
    var reader = RequestReader(bodyBytes: { _ in 4_096 }, isReadInParts: { $0.method == "PUT" })
    var out: [RequestReader.Request] = []
    var part: [UInt8] = []
    var offset = 0
    while offset < stream.count {
      let end = min(stream.count, offset + step)
      stream[offset..<end].withUnsafeBytes { reader.append($0) }
      offset = end
      reading: while true {
        switch reader.next() {
        case .needsMore: break reading
        case .continueExpected: continue
        case .part(_, let octets): part += octets
        case .request(var request):
          if !part.isEmpty { (request.body, part) = (part, []) }
          precondition(request.body.count <= 4_096, "a body beyond its bound")
          out.append(request)
        case .refused: return out
        }
      }
    }
    return out
  }
  precondition(requests(Int(first % 16) + 1) == requests(65_536), "a split changed what was read")
}

/// As above, for frames: the same events, whole messages within their bound.
@Sendable func fuzzWebSocket(_ bytes: [UInt8]) { fuzzFrames(bytes, .server) }

/// The same for what a server sends us.
@Sendable func fuzzWebSocketClient(_ bytes: [UInt8]) { fuzzFrames(bytes, .client) }

private func fuzzFrames(_ bytes: [UInt8], _ role: FrameReader.Role) {
  guard let first = bytes.first else { return }
  let stream = Array(bytes.dropFirst())
  func events(_ step: Int) -> [FrameReader.Event] {
    var reader = FrameReader(role, messageBytes: 1_024)
    var out: [FrameReader.Event] = []
    var offset = 0
    while offset < stream.count {
      let end = min(stream.count, offset + step)
      stream[offset..<end].withUnsafeBytes { octets in
        reader.read(octets) { event in
          switch event {
          case .text(let message), .binary(let message): precondition(message.count <= 1_024, "a message beyond its bound")
          default: break
          }
          out.append(event)
          return true
        }
      }
      offset = end
    }
    return out
  }
  precondition(events(Int(first % 16) + 1) == events(65_536), "a split changed what was read")
}
