import TrunklineBytes
import TrunklineSTUN

/// The full agent of our own phone (RFC 8445), which starts as controlling: it checks pairs, nominates one and keeps consent
/// (RFC 7675). It has one component, so that nothing is ever frozen. It has no clock and no I/O: datagrams and times go in,
/// datagrams and events come out.
///
/// | state | event | next |
/// |---|---|---|
/// | checking | answer to a check | pair valid; best valid pair nominated at once if none better is open, else within 100 ms |
/// | checking | answer to the nominating check | connected, `nominated` |
/// | checking | every pair failed and candidates are complete, or 15 s | failed, `failed` |
/// | connected | `probe` | consent requested five times a second, later twice, every other pair checked; the first that answers is nominated |
/// | connected | 30 s without an answer | lost, `consentLost`; an answer later is `consentRegained` |
/// | any | check of the peer | answered; triggered check; role conflict resolved by tie-breaker |
/// | any | 487 | role switched, checked again |
/// | any | `restart` | checking; the nominated pair carries media until another is nominated |
public struct ControllingAgent: Sendable {
  public enum NominationMode: Sendable {
    /// One pair is chosen and checked again with USE-CANDIDATE.
    case regular
    /// USE-CANDIDATE in every check: a round trip sooner, but the peer may see several nominations in sequence (RFC 5245
    /// §8.1.1.2).
    case aggressive
  }
  public enum State: Sendable, Equatable { case checking, connected, lost, failed }
  public enum Event: Sendable, Equatable {
    case nominated(CandidatePair)
    case consentLost(CandidatePair)
    case consentRegained(CandidatePair)
    case failed
  }
  public struct Datagram: Sendable, Equatable {
    public let pair: CandidatePair
    public let bytes: [UInt8]
  }
  /// The outputs of a call; the caller empties it after use.
  public struct Output: Sendable {
    public var datagrams: [Datagram] = []
    public var events: [Event] = []
    public init() {}
  }

  /// The ufrag and key of both sides for one generation.
  struct Credentials: Sendable {
    let localUfrag: [UInt8]
    let localKey: IntegrityKey
    var remoteUfrag: [UInt8] = []
    var remoteKey: IntegrityKey?
  }

  public internal(set) var state = State.checking
  /// The pair that carries media; after a restart still the old one, until another is nominated.
  public var nominatedPair: CandidatePair? { consent?.pair }
  /// Types of the nominated pair's candidates, for `media.ready`.
  public internal(set) var nominatedKinds: (local: CandidateKind, remote: CandidateKind)?
  /// Smoothed round trip of checks that needed no retransmission.
  public internal(set) var roundTrip: Duration?
  public internal(set) var isControlling = true

  let mode: NominationMode
  let random: RandomSource
  let tieBreaker: UInt64
  var credentials: Credentials
  var previous: Credentials?
  var locals: [Candidate] = []
  var remotes: [Candidate] = []
  var pairs: [CheckPair] = []
  var areCandidatesComplete = false
  var consent: Consent?
  /// Since when the owner receives nothing (`probe`); nil: it receives.
  var probingSince: Instant?
  var isProbing: Bool { probingSince != nil }
  var nextPaceAt = Instant.zero
  var nominateAt: Instant?
  var checkingSince: Instant?

  /// An agent with our ufrag and password; checks begin when both sides' candidates and the peer's credentials are known.
  public init(ufrag: String, password: String, mode: NominationMode = .regular, random: RandomSource) {
    credentials = Credentials(localUfrag: Array(ufrag.utf8), localKey: IntegrityKey(password: password))
    self.mode = mode
    self.random = random
    tieBreaker = random.next()
  }

  /// Whether there is something to check.
  public var hasPairs: Bool { !pairs.isEmpty }

  /// Adds a socket of ours, or our address at a relay, which may be allocated late; the candidate's address is the one that
  /// the caller sends from.
  public mutating func addLocal(_ candidate: Candidate) {
    guard locals.count < Limits.localCandidates, !locals.contains(where: { $0.address == candidate.address }) else { return }
    locals.append(candidate)
    for remote in remotes { addPair(local: candidate, remote: remote) }
  }

  /// Adds a candidate of the peer, from its description or trickled.
  public mutating func addRemote(_ candidate: Candidate) {
    guard remotes.count < Limits.remoteCandidates, !remotes.contains(where: { $0.address == candidate.address }) else { return }
    remotes.append(candidate)
    for local in locals { addPair(local: local, remote: candidate) }
  }

  /// The peer's ufrag and password.
  public mutating func setRemote(ufrag: String, password: String) {
    credentials.remoteUfrag = Array(ufrag.utf8)
    credentials.remoteKey = IntegrityKey(password: password)
  }

  /// No more candidates will arrive: the agent fails as soon as every pair has failed.
  public mutating func endOfCandidates() { areCandidatesComplete = true }

  /// ICE restart (RFC 8445 §9), for instance after a path change: new credentials, all pairs and remote candidates forgotten.
  /// Give the new local candidates and then the peer's answer as at the start.
  public mutating func restart(ufrag: String, password: String) {
    previous = credentials
    credentials = Credentials(localUfrag: Array(ufrag.utf8), localKey: IntegrityKey(password: password))
    locals = []
    remotes = []
    pairs = []
    areCandidatesComplete = false
    nominateAt = nil
    checkingSince = nil
    state = .checking
  }

  mutating func addPair(local: Candidate, remote: Candidate) {
    guard local.address.ip.canReach(remote.address.ip), pairs.count < Limits.pairs else { return }
    pairs.append(CheckPair(local: local, remote: remote, isControlling: isControlling))
    pairs.sort { $0.priority > $1.priority }
  }
}
