import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// Parts of a call's state, by subject.
extension Call {
  /// The users whose devices may have the call.
  struct Users {
    /// The call's user; while it rings for several, the first of them. Empty: not known yet.
    var owner: String
    /// Users whose devices ring.
    var ringing: [String]
    /// Users whose devices rang before the call was diverted.
    var former: [String] = []
    /// The account of an outgoing call, or of an incoming one for which none is configured.
    let account: String
    /// Accounts of an incoming call, by user: only devices that are logged in to the account ring.
    var accounts: [String: String] = [:]
    /// The route's account, for users without their own.
    var routeAccount: String?
    /// What follows once the cluster has located the users' devices; nil: no query is pending.
    var locating: CallMachine.Found?
    /// Their devices at other nodes.
    var remoteDevices: [RemoteDevice] = []

    init(_ owner: String, account: String) {
      (self.owner, self.account) = (owner, account)
      ringing = owner.isEmpty ? [] : [owner]
    }

    func concerns(_ user: String) -> Bool { ringing.contains(user) || former.contains(user) }
    /// All users whose devices may know of the call.
    var concerned: [String] { ringing + former }

    /// The account that devices of this user are sent.
    func account(of user: String) -> String { accounts[user] ?? account }

    func isFor(_ accounts: [String], of user: String) -> Bool { self.accounts[user].map(accounts.contains) ?? true }

    mutating func belongs(to account: String?, of user: String) { accounts[user] = account }

    mutating func ring(for next: [String]) {
      former += ringing.filter { !former.contains($0) }
      ringing = next
      if let first = next.first { owner = first }
    }
  }

  /// The caller and the callee.
  struct Parties {
    /// As the app sees them.
    var from: Handle
    var to: Handle
    /// As the record holds them.
    let callerNumber: String
    let calledNumber: String
    /// Outgoing: the number that the INVITE calls.
    var dialled: AllowedNumber?
    /// Incoming: the caller withholds the number. Outgoing: the user does.
    var isPrivate = false
    /// The callees before the call was diverted, the latest first.
    var divertedFrom: [Handle] = []
    /// Identity header fields (RFC 8224): of the trunk's INVITE, or of the app for ours.
    var identities: [SignedIdentity] = []
    /// Of the trunk's INVITE and the webhook, or of the app's `call.start`.
    var parameters: CallParameters?
    /// The location of an emergency call, as the app states it: PIDF-LO.
    var location: String?
    /// The app sent a location that cannot be used.
    var lacksLocation = false
    /// A program made the call for a user.
    var origination: Origination?
    /// For a call between users: the other user's call.
    var peer: CallRecord.Peer?
    /// The verifier's attestation: A, B or C.
    var attestation: String?
    /// The devices are offered the call after the verifier's answer, or after its deadline.
    var isVerifying = false

    init(from: Handle, to: Handle, callerNumber: String, calledNumber: String) {
      (self.from, self.to) = (from, to)
      self.callerNumber = String(callerNumber.prefix(Limits.textCharacters))
      self.calledNumber = String(calledNumber.prefix(Limits.textCharacters))
    }
  }

  /// The INVITE of a caller, and its parsed offer; nil: it has none.
  struct Intake {
    let invite: InboundInvite
    let offer: SessionDescription?
  }

  /// Where the call is diverted if no device answers, and where it was diverted.
  struct DiversionState {
    var rules = Diversions()
    /// The number of diversions that the INVITE states.
    var before = 0
    var made: [CallRecord.Diversion] = []
    /// A diversion that is about to begin.
    var planned: PlannedDiversion?
    /// The recording that is played instead of an answer by a device.
    var recording: (planned: PlannedDiversion, Diversions.Recording)?
  }

  struct Transfers {
    /// Diversions, REFERs and Replaces that this call has followed.
    var followed = 0
    /// Max-Forwards of the INVITE that made it; a leg made for it sends one less.
    var maxForwards = 70
    /// Our own REFER is on its way.
    var isAsked = false
    var made: [CallRecord.Transfer] = []

    mutating func begin(_ transfer: CallRecord.Transfer) {
      made.append(transfer)
      if made.count > Limits.recordedTransfers { made.removeFirst() }
    }
    /// - Parameter code: the final status; nil: it was not reported.
    mutating func end(_ code: Int?) {
      if let last = made.indices.last, made[last].sip == nil { made[last].sip = code }
    }
  }

  /// Media of the app's side.
  struct AppMedia {
    var reservation: MediaReservation?
    var nextLeg: UInt32 = 1
    var isHeld = false
    var isMuted = false
    /// The stream that has the call in place of an app.
    var stream: Stream?
    var pendingDigits: [CallDTMF] = []
    /// A program plays a file to the trunk.
    var playsFile = false
    /// The group of calls whose trunks hear each other; nil: the call is in none.
    var group: MediaGroupID?
    /// The request by which the device translates; nil: it does not.
    var translation: CallTranslate?
  }

  /// Data of the end, the record and the tombstone.
  struct Bookkeeping {
    var isJournalled = false
    /// Another node has closed and recorded the call.
    var isDisowned = false
    var offeredDevices = 0
    /// The durations of the first device whose `call.ringing` had any.
    var firstRing: CallRecord.Ring?
    /// Devices may have wake tokens for the call.
    var wasPushed = false
    /// Why the last push failed.
    var pushFailure: String?
    /// Counts of the devices' refusals, from which the final response follows.
    var declines = Declines()
    /// The quality that was reported last is poor.
    var isPoor = false
    /// The side that sent nothing between the last two statistics.
    var silentSide: CallSide?
    var end: CallRecord.End?
    var recordings = Recordings()
    /// The URL of the stream that has or had the call, without its query.
    var stream: String?
    /// The end reason for devices that had no part in it.
    var reasonForOthers: EndReason?
  }

  struct Declines { var declined = 0, busy = 0, blocked = 0, filtered = 0, unusable = 0, incapable = 0 }
}
