public import TrunklineBytes
public import TrunklineMediaSession
public import TrunklineRTP

/// A program that talks with a caller in place of an app, over a WebSocket that we open.
public struct StreamTarget: Sendable, Equatable {
  /// Format of the audio on the WebSocket.
  public enum Format: String, Sendable, CaseIterable {
    /// G.711 µ-law in JSON, as Twilio's Media Streams have it.
    case mulaw
    /// 16-bit samples in binary messages, at 8 or 16 kHz.
    case pcm8, pcm16
    public var band: AudioBand { self == .pcm16 ? .wideband : .narrowband }
  }
  public let url: StreamURL
  public var format: Format
  /// A bearer token for the peer.
  public var token: Redacted<String>?
  /// The addresses to which the host's name may resolve.
  public let reach: StreamReach

  /// A target from the configuration, which may name any host. A URL from a program becomes a target by `StreamHosts` only.
  public init(_ url: StreamURL, format: Format = .mulaw, token: Redacted<String>? = nil) {
    (self.url, self.format, self.token, reach) = (url, format, token, .anywhere)
  }

  package init(_ url: StreamURL, format: Format, reach: StreamReach) {
    (self.url, self.format, self.reach) = (url, format, reach)
  }
}

/// `wss://host[:port]/path?query`, or `ws:` to this machine.
public struct StreamURL: Sendable, Hashable, CustomStringConvertible {
  public let host: String
  public let port: UInt16
  /// With the query.
  public let path: String
  public let isSecure: Bool
  public let description: String

  /// Nil for anything else: other schemes, user names, fragments, more than `Limits.urlBytes` octets.
  public init?(_ text: String) {
    guard text.utf8.count <= Limits.urlBytes, text.utf8.allSatisfy({ $0 > 32 && $0 < 127 }), !text.contains("#"),
      let mark = text.range(of: "://")
    else { return nil }
    let scheme = text[..<mark.lowerBound]
    guard scheme == "wss" || scheme == "ws" else { return nil }
    let rest = text[mark.upperBound...]
    let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
    let (authority, tail) = (rest[..<end], rest[end...])
    guard !authority.contains("@"), !authority.isEmpty else { return nil }
    var name = authority
    var port: UInt16?
    if let bracket = authority.lastIndex(of: "]") {
      guard authority.hasPrefix("[") else { return nil }
      name = authority[authority.index(after: authority.startIndex)..<bracket]
      let behind = authority[authority.index(after: bracket)...]
      if !behind.isEmpty {
        guard behind.hasPrefix(":"), let number = UInt16(behind.dropFirst()), number > 0 else { return nil }
        port = number
      }
    } else if let colon = authority.lastIndex(of: ":") {
      guard let number = UInt16(authority[authority.index(after: colon)...]), number > 0 else { return nil }
      (name, port) = (authority[..<colon], number)
    }
    guard !name.isEmpty, name.utf8.allSatisfy({ $0 != UInt8(ascii: "[") && $0 != UInt8(ascii: "]") }) else { return nil }
    let isLocal = name == "localhost" || IPAddress(String(name))?.isLoopback == true
    guard scheme == "wss" || isLocal else { return nil }
    (host, isSecure, description) = (String(name), scheme == "wss", text)
    self.port = port ?? (scheme == "wss" ? 443 : 80)
    path = tail.hasPrefix("/") ? String(tail) : "/" + tail
  }

  /// For records: a query may hold secrets.
  public var withoutQuery: String { String(description.prefix { $0 != "?" }) }

  /// As the Host header field has it.
  public var hostField: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
  }
}

/// A stream that is to be opened for a call.
public struct StreamRequest: Sendable {
  public var call: CallID
  public var target: StreamTarget
  /// The parameters for the peer in `start`.
  public var parameters: [String: String]
  public var stream: AudioStream
  public init(_ call: CallID, _ target: StreamTarget, parameters: [String: String], stream: AudioStream) {
    (self.call, self.target, self.parameters, self.stream) = (call, target, parameters, stream)
  }
}

/// A command to the owner of the streams.
public enum StreamCommand: Sendable {
  /// Answered by `opened` or `refused`, within 5 s.
  case open(StreamRequest)
  /// The trunk has pressed a key.
  case digit(CallID, Character)
  /// The call is over. No `StreamNews` follows.
  case close(CallID)
  /// The authorities that sign the peers' certificates: a PEM file, or nil for the system's.
  case authorities(String?)
}

/// An event of a stream.
public enum StreamNews: Sendable {
  /// The WebSocket is open, and `start` was sent.
  case opened(CallID)
  case refused(CallID, String)
  /// The peer closed the stream, or its connection was lost.
  case ended(CallID, String, isByPeer: Bool)

  package var call: CallID {
    switch self {
    case .opened(let call), .refused(let call, _), .ended(let call, _, _): call
    }
  }
}
