public import AppSessions

/// Why an INVITE or `call.start` was refused. INVITEs received = incoming calls + refusals of direction `incoming`; accepted
/// `call.start` = outgoing calls.
public struct Refusal: Sendable, Hashable {
  public enum Reason: String, Sendable, CaseIterable {
    /// `trunkDown`, outgoing: every trunk of the route is down. `trunkRate`: the trunk has had its calls of this second.
    case trunkDown, trunkRate
    /// Incoming: redirected by 302 to the node that has the user. Outgoing: another node has this call.
    case steered
    /// Incoming, from an edge: the shared store does not state where the user's devices are, and none is known here. The edge
    /// tries the next node.
    case unlocated
    /// An operator disabled the trunk.
    case trunkDisabled
    /// The user may not dial the number; the user made too many calls in this hour; the number is the user's own; the number to
    /// call from is not the user's.
    case userPrefix, userRate, ownNumber, callerNumber
    case draining, overload, trunkLimit, userLimit, mediaPorts, mediaOverload, diversions, unknownTrunk
    case notFound, forbidden, emergency, codec
    /// Refused by the SIP user agent before the call machine saw it; `detail` has its reason.
    case signalling
  }
  public var reason: Reason
  public var direction: CallDirection
  /// Empty if not known.
  public var trunk: String
  public var detail: String?
  /// Not a fault, such as the first challenge of a caller that authenticates.
  public var isRoutine = false
  /// The caller, as far as known.
  public var caller = Caller()
  public struct Caller: Sendable, Hashable {
    /// The device of an outgoing call.
    public var device: DeviceKey?
    /// The other party: the caller's number, or the dialled one.
    public var number: String?
    /// The Call-ID of an INVITE, or the id of a `call.start`.
    public var call: String?
    public init(device: DeviceKey? = nil, number: String? = nil, call: String? = nil) {
      (self.device, self.number, self.call) = (device, number, call)
    }
  }
  public init(
    _ reason: Reason, _ direction: CallDirection, trunk: String = "", detail: String? = nil, caller: Caller = Caller()
  ) {
    (self.reason, self.direction, self.trunk, self.detail) = (reason, direction, trunk, detail)
    self.caller = caller
  }
}
