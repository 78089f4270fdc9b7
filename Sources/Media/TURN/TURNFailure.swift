public import TrunklineBytes
import TrunklineSTUN

/// Why there is no relay, or no longer one.
public enum TURNFailure: Error, Sendable, Hashable {
  /// No answer to a request, in spite of retransmissions.
  case noAnswer
  /// 401 to our credentials: they are wrong or have expired.
  case unauthorized
  /// 403: the server will not send to any peer that we requested.
  case forbidden
  /// 437: the server no longer knows our allocation.
  case allocationMismatch
  /// 438 after each retry with a new nonce.
  case staleNonce
  /// 440, 443: the server has no address of the peer's family.
  case addressFamily
  /// 441: the allocation belongs to other credentials.
  case wrongCredentials
  /// 442: the server does not relay UDP.
  case unsupportedTransport
  /// 486: the user has reached the limit of allocations.
  case quotaReached
  /// 508: the server is full.
  case insufficientCapacity
  /// 300: another server is to be tried.
  case tryAlternate(SocketAddress?)
  /// Another error code.
  case refused(UInt16)
  /// An answer without a required attribute, or a stream that is not TURN.
  case malformed

  init(_ code: UInt16?) {
    switch code.flatMap(STUNErrorCode.init(rawValue:)) {
    case .unauthenticated: self = .unauthorized
    case .forbidden: self = .forbidden
    case .allocationMismatch: self = .allocationMismatch
    case .staleNonce: self = .staleNonce
    case .addressFamilyNotSupported, .peerFamilyMismatch: self = .addressFamily
    case .wrongCredentials: self = .wrongCredentials
    case .unsupportedTransport: self = .unsupportedTransport
    case .allocationQuotaReached: self = .quotaReached
    case .insufficientCapacity: self = .insufficientCapacity
    default: self = code.map { .refused($0) } ?? .malformed
    }
  }
}
