/// Why a WebSocket is closed (docs/reference/protocol.md, Frames; RFC 6455 §7.4.1).
public struct CloseCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  public var rawValue: UInt16
  public init(rawValue: UInt16) { self.rawValue = rawValue }

  public static let normal = CloseCode(rawValue: 1000)
  public static let goingAway = CloseCode(rawValue: 1001)
  public static let binary = CloseCode(rawValue: 1003)
  /// No close frame was seen (RFC 6455 §7.1.5); never sent.
  public static let abnormal = CloseCode(rawValue: 1006)
  public static let malformed = CloseCode(rawValue: 1007)
  /// Too many messages a second.
  public static let policy = CloseCode(rawValue: 1008)
  public static let tooBig = CloseCode(rawValue: 1009)
  public static let draining = CloseCode(rawValue: 1012)
  public static let tryAgainLater = CloseCode(rawValue: 1013)
  public static let authFailed = CloseCode(rawValue: 4001)
  public static let sequenceGap = CloseCode(rawValue: 4002)
  public static let revoked = CloseCode(rawValue: 4003)
  public static let overflow = CloseCode(rawValue: 4008)
  public static let replaced = CloseCode(rawValue: 4009)

  public var description: String { String(rawValue) }
}

/// The `code` of an `err` (docs/reference/protocol.md, Details). A code this version does not know is read as `server`.
public enum ErrorCode: String, CaseIterable, Sendable, Codable {
  /// The token, or its permission, is insufficient.
  case auth
  /// An operator blocked this device.
  case revoked
  /// A field that cannot be accepted.
  case badRequest
  /// A message that this gateway does not know.
  case unsupported
  /// Not in this state of the call.
  case badState
  /// The call has ended.
  case gone
  /// Another device has the call.
  case answeredElsewhere
  /// No route to the requested callee.
  case notFound
  /// This user may not request it.
  case forbidden
  /// The number to call from (`from`) does not belong to this user.
  case callerNumber
  /// Emergency calls are not carried.
  case emergency
  /// The other party is busy.
  case busy
  /// A description without a common codec.
  case codec
  /// A description of an older generation.
  case staleGen
  /// A limit of this user is reached.
  case tooMany
  /// The gateway accepts no more calls now.
  case overload
  /// A fault of the gateway, or a code that this version does not know.
  case server

  public init(from decoder: any Decoder) throws {
    self = ErrorCode(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .server
  }
}
