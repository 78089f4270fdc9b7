import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP

/// One device's part in a call: what it was offered, what it prepared, and how far its media is.
///
/// A device's `gen` is the number of the SDP exchange that the app sees. `epoch` counts the descriptions for the media thread: a
/// second `prepare` of the same `gen` on a new session is a new epoch, so that events of the old association cannot open the
/// gate.
struct DeviceLeg {
  enum Phase { case offered, ringing, winner }

  let key: DeviceKey
  let id: AppLegID
  private(set) var phase = Phase.offered
  /// The device's present session, or its last one.
  private(set) var session: SessionID
  private(set) var isConnected: Bool
  /// For a device without a socket: until when it delays the call's end, because it may reconnect.
  private(set) var awaitedUntil: Instant?
  /// `media.active` is in its caps: the first words are kept until it comes.
  private(set) var announcesActive: Bool
  private(set) var negotiation: AppNegotiation
  /// Our newest description.
  private(set) var sdp = ""
  private(set) var gen = 1
  /// The generation whose audio flowed one way only, for which the app was sent a request to restart.
  private var oneWayGen = 0
  /// The session on which the current generation's description was received; nil: none was.
  private(set) var describedOn: SessionID?
  /// The session on which `call.offer` was acked: there the device is warm.
  private(set) var ackedOn: SessionID?
  private(set) var isPlaying = false
  /// The `caps` that were sent last; nil: none yet.
  private var sentCapabilities: CallCapabilities?
  /// The content of its `call.ringing`, and its `stats` since it has the call.
  private(set) var rang: CallRinging?
  private(set) var stats: AppStats?

  private(set) var epoch = 0
  private var associationEpoch = 0
  private var nominatedEpoch = 0
  private var keysEpoch = 0
  private var isReady = false
  private(set) var failure: AppLegFailure?
  private(set) var srtpProfile: String?
  /// When the current description's media reached these steps, also while the call still rang: for the winner's record.
  private(set) var nominatedAt: Instant?
  private(set) var keysAt: Instant?
  private(set) var readyAt: Instant?

  init(key: DeviceKey, id: AppLegID, session: SessionID, isConnected: Bool, announcesActive: Bool, negotiation: AppNegotiation) {
    (self.key, self.id, self.session, self.isConnected) = (key, id, session, isConnected)
    (self.announcesActive, self.negotiation) = (announcesActive, negotiation)
  }

  var local: AppLegLocal {
    AppLegLocal(ufrag: negotiation.endpoint.ufrag, password: negotiation.endpoint.password, ssrc: negotiation.endpoint.ssrc)
  }
  var isDescribed: Bool { describedOn != nil }
  var hasPair: Bool { epoch > 0 && nominatedEpoch == epoch }
  var hasKeys: Bool { epoch > 0 && keysEpoch >= associationEpoch && associationEpoch > 0 }
  /// `media.ready` of this generation was received.
  var saidReady: Bool { isReady && isDescribed }
  /// Pair, keys and the device's `media.ready`, all of the current description.
  var hasMedia: Bool { isDescribed && hasPair && hasKeys && saidReady }

  // MARK: the device

  /// A new session, whose snapshot offers the call without an ack: not warm.
  mutating func connected(_ device: DevicePresence) {
    session = device.session
    isConnected = true
    announcesActive = device.announcesActive
    ackedOn = nil
  }
  /// The socket is another than the one that acked the offer: not warm.
  mutating func resumed(_ session: SessionID) { (self.session, isConnected, ackedOn) = (session, true, nil) }
  mutating func disconnected(until deadline: Instant) { (isConnected, awaitedUntil) = (false, deadline) }
  /// It was offered the call without a socket.
  mutating func isAwaited(until deadline: Instant) { awaitedUntil = deadline }
  mutating func acked(on session: SessionID) { ackedOn = session }

  mutating func rings() { if phase == .offered { phase = .ringing } }
  /// Its session has ended: the next one has to report again that it rings.
  mutating func stopsRinging() { if phase == .ringing { phase = .offered } }
  mutating func wins() { phase = .winner }
  /// False: a repeat after a reconnect, or nothing was measured.
  mutating func measured(_ ringing: CallRinging) -> Bool {
    guard rang == nil, ringing != CallRinging() else { return false }
    rang = ringing
    return true
  }
  mutating func received(_ news: StreamStats) { stats = AppStats(stats, news) }

  /// False: it plays already.
  mutating func plays() -> Bool {
    defer { isPlaying = true }
    return !isPlaying
  }
  /// Audio is connected: false if its first words are kept until it plays.
  mutating func connects(keepingFirstWords: Bool) { isPlaying = !keepingFirstWords }

  /// True: they differ from those sent last.
  mutating func sends(_ capabilities: CallCapabilities) -> Bool {
    defer { sentCapabilities = capabilities }
    return sentCapabilities != capabilities
  }

  /// Audio of this generation flows one way only. True the first time.
  mutating func flowsOneWay() -> Bool {
    defer { oneWayGen = gen }
    return oneWayGen < gen
  }

  // MARK: descriptions

  mutating func makeOffer() { sdp = negotiation.makeOffer() }

  /// Candidates for descriptions from now on; `offers`: an offer that was not answered yet names them.
  mutating func moves(to candidates: [SocketAddress], offers: Bool) {
    negotiation.endpoint.candidates = candidates
    if offers, !isDescribed { makeOffer() }
  }

  /// The device's answer to our offer.
  mutating func apply(answer: String, on session: SessionID) throws(NegotiationError) -> AppLegRemote {
    describe(try negotiation.apply(answer: answer), on: session, newAssociation: true)
  }

  /// The device's offer; our answer is `sdp`.
  mutating func accept(_ offer: SessionDescription, on session: SessionID) throws(NegotiationError) -> AppLegRemote {
    let (answer, media) = try negotiation.answer(to: offer)
    sdp = answer
    return describe(media, on: session, newAssociation: true)
  }

  /// A new generation: the device's offer, our answer with a new ufrag and password. Nothing changes if the offer cannot be used.
  mutating func restart(
    gen: Int, _ offer: String, on session: SessionID, opus: OpusLimits, _ random: RandomSource
  ) throws(NegotiationError) -> (remote: AppLegRemote, isNew: Bool) {
    var next = self
    next.renewCredentials(random)
    next.negotiation.endpoint.opus = opus
    let (answer, media) = try next.negotiation.answer(to: offer)
    let before = negotiation.agreed
    let isNew = media.fingerprint != before?.fingerprint || media.setup != before?.setup || failure != nil
    next.gen = gen
    next.sdp = answer
    let remote = next.describe(media, on: session, newAssociation: isNew)
    self = next
    return (remote, isNew)
  }

  /// Applies a description: earlier events of the media no longer count. Returns the remote side for the media thread.
  private mutating func describe(_ media: AppMedia, on session: SessionID, newAssociation: Bool) -> AppLegRemote {
    epoch += 1
    if newAssociation || associationEpoch == 0 { (associationEpoch, failure) = (epoch, nil) }
    describedOn = session
    isReady = false
    var remote = AppLegRemote(
      generation: epoch, ufrag: media.credentials.ufrag, password: media.credentials.password,
      fingerprintAlgorithm: media.fingerprint.algorithm.rawValue, fingerprint: media.fingerprint.bytes,
      encoding: media.codec, payloadType: media.payloadType, telephoneEvent48: media.telephoneEvent48,
      telephoneEvent8: media.telephoneEvent8)
    remote.opus = OpusPreferences(media.opus)
    remote.isDTLSServer = media.setup == .passive
    return remote
  }

  mutating func nominated(epoch: Int, at now: Instant) {
    if epoch > nominatedEpoch { (nominatedEpoch, nominatedAt) = (epoch, now) }
  }
  mutating func keysInstalled(epoch: Int, profile: String, at now: Instant) {
    guard epoch >= associationEpoch else { return }
    keysEpoch = epoch
    srtpProfile = profile
    failure = nil
    keysAt = now
  }
  mutating func ready(gen: Int, at now: Instant) {
    if gen == self.gen, isDescribed, !isReady { (isReady, readyAt) = (true, now) }
  }
  mutating func failed(_ failure: AppLegFailure) { self.failure = failure }

  /// A new ufrag and password of ours for an ICE restart (RFC 8445 §9); the stream's SSRC stays.
  private mutating func renewCredentials(_ random: RandomSource) {
    negotiation.endpoint.ufrag = random.text(Self.ufragLength)
    negotiation.endpoint.password = random.text(Self.passwordLength)
  }

  /// Above the 24 and 128 bits that RFC 8839 §5.4 requires.
  static let ufragLength = 8
  static let passwordLength = 24
}

extension OpusPreferences {
  /// From the parameters of either leg's peer.
  init(_ asked: OpusParameters) {
    self.init(
      acceptsPauses: asked.usesDTX, acceptsRepair: !asked.refusesInbandFEC, maximumBitrate: asked.maxAverageBitrate,
      isConstantRate: asked.wantsConstantBitrate)
    maximumPlaybackRateHz = asked.maxPlaybackRateHz
  }
}
