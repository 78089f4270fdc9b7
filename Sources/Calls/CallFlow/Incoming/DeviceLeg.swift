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
  var phase = Phase.offered
  /// The device's present session, or its last one.
  var session: SessionID
  var isConnected: Bool
  /// For a device without a socket: until when it delays the call's end, because it may reconnect.
  var awaitedUntil: Instant?
  /// `media.active` is in its caps: the first words are kept until it comes.
  var announcesActive: Bool
  var negotiation: AppNegotiation
  /// Our newest description.
  var sdp = ""
  var gen = 1
  /// The generation whose audio flowed one way only, for which the app was sent a request to restart.
  var oneWayGen = 0
  /// The session on which the current generation's description was received; nil: none was.
  var describedOn: SessionID?
  /// The session on which `call.offer` was acked: there the device is warm.
  var ackedOn: SessionID?
  var isPlaying = false
  /// The `caps` that were sent last; nil: none yet.
  var sentCapabilities: CallCapabilities?
  /// The content of its `call.ringing`, and its `stats` since it has the call.
  var rang: CallRinging?
  var stats: AppStats?

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

  /// Applies a description: earlier events of the media no longer count. Returns the remote side for the media thread.
  mutating func describe(_ media: AppMedia, on session: SessionID, newAssociation: Bool) -> AppLegRemote {
    epoch += 1
    if newAssociation || associationEpoch == 0 { (associationEpoch, failure) = (epoch, nil) }
    (describedOn, isReady) = (session, false)
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
    (keysEpoch, srtpProfile, failure, keysAt) = (epoch, profile, nil, now)
  }
  mutating func ready(gen: Int, at now: Instant) {
    if gen == self.gen, isDescribed, !isReady { (isReady, readyAt) = (true, now) }
  }
  mutating func failed(_ failure: AppLegFailure) { self.failure = failure }

  /// A new ufrag and password of ours for an ICE restart (RFC 8445 §9); the stream's SSRC stays.
  mutating func renewCredentials(_ random: RandomSource) {
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

/// The message, or the answer instead of it, that ended the call for a device.
struct Terminal {
  var over: CallOver
  /// The device itself ended it (`call.reject`, `call.unavailable`), so it knows.
  var isByDevice: Bool
  /// The device was not connected, or lost its socket before its ack: a new session gets `call.gone` instead.
  var isUnseen: Bool
  /// The device was notified of the call by a push only, and no session has the message in its outbox.
  var isOfPushOnly = false
  /// The device has acked it.
  var isAcked = false

  /// The socket was lost, and messages without an ack may be lost with it.
  mutating func socketLost() { if !isAcked { isUnseen = true } }

  /// The push was refused for certain: the device knows nothing of the call.
  mutating func pushRefused() { if isOfPushOnly { isUnseen = false } }

  /// The session continues and replays messages without an ack.
  mutating func resumed() { if !isOfPushOnly { isUnseen = false } }

  /// The terminal message for a new session, once.
  mutating func popUnseen() -> CallOver? {
    guard isUnseen, !isByDevice else { return nil }
    (isUnseen, isOfPushOnly) = (false, false)
    return over
  }
}
