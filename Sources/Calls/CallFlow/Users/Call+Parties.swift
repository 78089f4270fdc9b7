import CallModel
import TrunklineAppProtocol
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

extension Call {
  /// The caller and the callee.
  struct Parties {
    /// As the app sees them.
    private(set) var from: Handle
    let to: Handle
    /// As the record holds them.
    let callerNumber: String
    let calledNumber: String
    /// Outgoing: the number that the INVITE calls.
    let dialled: AllowedNumber?
    /// Incoming: the caller withholds the number. Outgoing: the user does.
    let isPrivate: Bool
    /// The callees before the call was diverted, the latest first.
    private(set) var divertedFrom: [Handle] = []
    /// Identity header fields (RFC 8224): of the trunk's INVITE, or of the app for ours.
    let identities: [SignedIdentity]
    /// Of the trunk's INVITE and the webhook, or of the app's `call.start`.
    private(set) var parameters: CallParameters?
    /// The location of an emergency call, as the app states it: PIDF-LO.
    private(set) var location: String?
    /// The app sent a location that cannot be used.
    private(set) var lacksLocation = false
    /// A program made the call for a user.
    let origination: Origination?
    /// For a call between users: the other user's call.
    private(set) var peer: CallRecord.Peer?
    /// The verifier's attestation: A, B or C.
    private(set) var attestation: String?

    init(
      from: Handle, to: Handle, callerNumber: String, calledNumber: String, dialled: AllowedNumber? = nil,
      isPrivate: Bool = false,
      identities: [SignedIdentity] = [], parameters: CallParameters? = nil, divertedFrom: [Handle] = [],
      origination: Origination? = nil
    ) {
      (self.from, self.to, self.dialled, self.isPrivate) = (from, to, dialled, isPrivate)
      self.callerNumber = String(callerNumber.prefix(Limits.textCharacters))
      self.calledNumber = String(calledNumber.prefix(Limits.textCharacters))
      (self.identities, self.parameters, self.divertedFrom) = (identities, parameters, divertedFrom)
      self.origination = origination
    }

    /// A better name of the caller. False: it is known.
    mutating func identify(_ caller: Handle) -> Bool {
      defer { from = caller }
      return from != caller
    }

    /// Another user has the call from now on.
    mutating func divert() { divertedFrom = Array(([to] + divertedFrom).prefix(Limits.diversions)) }

    /// The verifier's answer; nil: there is none.
    mutating func attest(_ level: String?) { attestation = level.flatMap { ["A", "B", "C"].contains($0) ? $0 : nil } }

    /// A call between users: the other one's call.
    mutating func meet(_ other: CallRecord.Peer) { peer = other }

    /// - Parameter location: nil: the app sent none that can be used.
    mutating func locate(_ location: String?, lacksLocation: Bool) {
      self.location = location
      self.lacksLocation = lacksLocation
    }

    /// Adds the parameters of a routing webhook to those of the trunk's INVITE; they replace those of the same names.
    /// - Returns: what is left out and why, for the call's timeline; nil: nothing.
    mutating func add(_ answered: [String: String]) -> String? {
      guard let added = CallParameters(answered) else { return CallParameters.fault(of: answered) }
      guard !added.isEmpty else { return nil }
      let all = parameters.map { $0.merging(added) } ?? added
      parameters = all ?? added
      return all == nil ? "parameters: those of the trunk's INVITE are left out, as both are beyond the limits" : nil
    }
  }

  /// The INVITE of a caller, and its parsed offer; nil: it has none.
  struct Intake {
    let invite: InboundInvite
    let offer: SessionDescription?
  }
}
