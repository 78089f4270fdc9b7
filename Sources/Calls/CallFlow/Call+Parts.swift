import AppProtocol
import AppSessions
import Bytes
import MediaSession
import SDP
import SIP
import SIPDialogs

/// What a call holds, by subject.
extension Call {
  /// Whose devices may have it.
  struct Users {
    /// The user of the call; while it rings for several, the first of them. Empty: none yet.
    var owner: String
    /// The users for whom it rings.
    var ringing: [String]
    /// The users for whom it rang before it was diverted.
    var former: [String] = []
    /// Of an outgoing call; of an incoming one where none is configured.
    let account: String
    /// Of an incoming call, for each user for whom it rings: only devices that are logged in to it ring.
    var accounts: [String: String] = [:]
    /// The route's, for users without one of their own.
    var routeAccount: String?
    /// Their devices are looked for in the cluster; what comes then.
    var locating: CallMachine.Found?
    /// Their devices at other nodes.
    var remoteDevices: [RemoteDevice] = []

    init(_ owner: String, account: String) {
      (self.owner, self.account) = (owner, account)
      ringing = owner.isEmpty ? [] : [owner]
    }

    func concerns(_ user: String) -> Bool { ringing.contains(user) || former.contains(user) }
    /// Everybody whose devices may know of it.
    var concerned: [String] { ringing + former }

    /// What devices of this user are told.
    func account(of user: String) -> String { accounts[user] ?? account }

    func isFor(_ accounts: [String], of user: String) -> Bool { self.accounts[user].map(accounts.contains) ?? true }

    mutating func belongs(to account: String?, of user: String) { accounts[user] = account }

    mutating func ring(for next: [String]) {
      former += ringing.filter { !former.contains($0) }
      ringing = next
      if let first = next.first { owner = first }
    }
  }

  /// Caller and callee.
  struct Parties {
    /// As the app sees them.
    var from: Handle
    var to: Handle
    /// As the record holds them.
    let callerNumber: String
    let calledNumber: String
    /// Outgoing: what the INVITE is for.
    var dialled: AllowedNumber?
    /// Incoming: the caller withholds the number. Outgoing: the user does.
    var isPrivate = false
    /// The called users before the call was diverted to us, the latest first.
    var divertedFrom: [Handle] = []
    /// Identity header fields (RFC 8224): of the trunk's INVITE, or of the app for ours.
    var identities: [SignedIdentity] = []
    /// Of the trunk's INVITE and the webhook, or of the app's `call.start`.
    var parameters: CallParameters?
    /// Of an emergency call, as the app gives it: PIDF-LO.
    var location: String?
    /// The app gave one that cannot be sent.
    var lacksLocation = false
    /// A program made the call for a user.
    var origination: Origination?
    /// Of a call between users: the other's call.
    var peer: CallRecord.Peer?
    /// What the verifier said of them: A, B or C.
    var attestation: String?
    /// The devices are told when the verifier has answered, or after its deadline.
    var isVerifying = false

    init(from: Handle, to: Handle, callerNumber: String, calledNumber: String) {
      (self.from, self.to) = (from, to)
      self.callerNumber = String(callerNumber.prefix(Limits.textCharacters))
      self.calledNumber = String(calledNumber.prefix(Limits.textCharacters))
    }
  }

  /// The INVITE of a caller, and its offer as it was read; nil: it has none.
  struct Intake {
    let invite: InboundInvite
    let offer: SessionDescription?
  }

  /// Where it goes if no device answers, and where it went.
  struct DiversionState {
    var rules = Diversions()
    /// Those of the INVITE.
    var before = 0
    var made: [CallRecord.Diversion] = []
    /// One that is to begin.
    var planned: PlannedDiversion?
    /// What is played in place of an answer.
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
    /// Nil: the outcome was not reported.
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
    /// Instead of an app.
    var stream: Stream?
    var pendingDigits: [CallDTMF] = []
    /// A program plays a file to the trunk.
    var playsFile = false
    /// Its trunk hears those of the same group.
    var group: MediaGroupID?
    /// The device translates; on.
    var translation: CallTranslate?
  }

  /// What the end, the record and the tombstone are made of.
  struct Bookkeeping {
    var isJournalled = false
    /// Another node has closed and recorded it.
    var isDisowned = false
    var offeredDevices = 0
    /// Of the first device whose `call.ringing` had any.
    var firstRing: CallRecord.Ring?
    /// Wake tokens of it are about.
    var wasPushed = false
    /// Why the last push failed.
    var pushFailure: String?
    /// How the devices' refusals add up: the final response follows from it.
    var declines = Declines()
    /// The last that was told of its sound.
    var isPoor = false
    /// From which nothing came between the last two statistics.
    var silentSide: CallSide?
    var end: CallRecord.End?
    var recordings = Recordings()
    /// Of the stream that has or had it, without its query.
    var stream: String?
    /// What devices hear of the end that had no part in it.
    var reasonForOthers: EndReason?
  }

  struct Declines { var declined = 0, busy = 0, blocked = 0, filtered = 0, unusable = 0, incapable = 0 }
}
