import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP

/// The reservation that a media session needs before it exists; the runtime returns it at once.
public struct MediaReservation: Sendable {
  public let session: MediaSessionID
  /// The address to which the trunk sends its RTP; RTCP at port + 1.
  public let trunkAddress: SocketAddress
  /// Host candidates of the app leg: every advertised address with the UDP port of the user's media thread.
  public var appCandidates: [SocketAddress]
  /// SHA-256 of the gateway's DTLS certificate.
  public let fingerprint: [UInt8]
  /// The media thread: sessions of one thread can be in a group.
  public let thread: Int

  public init(
    session: MediaSessionID, trunkAddress: SocketAddress, appCandidates: [SocketAddress], fingerprint: [UInt8], thread: Int = 0
  ) {
    self.thread = thread
    (self.session, self.trunkAddress, self.appCandidates, self.fingerprint) = (session, trunkAddress, appCandidates, fingerprint)
  }
}

public enum AudioDirection: UInt8, Sendable, CaseIterable { case trunkToApp, appToTrunk }

/// Why an app leg's media cannot start; the text is for the log and the record.
public enum AppLegFailure: Error, Sendable, Equatable {
  case fingerprintMismatch
  case dtls(String)
  case noCommonProfile
}

/// Media thread → control. Few per call; never one per packet. `indirect`: statistics are ten times as large as everything else,
/// and every event, input and message of control would have their size.
public enum MediaEvent: Sendable {
  /// A pair was nominated (again), with its remote address.
  case nominated(MediaSessionID, AppLegID, generation: Int, remote: SocketAddress)
  /// The app's packets come from another address, and the nominated one is silent: packets are sent to the new address.
  case appMoved(MediaSessionID, AppLegID, to: SocketAddress)
  /// One direction of the app leg has delivered nothing for 3 s although packets are sent and the other direction works; repeated
  /// while it lasts.
  case appOneWay(MediaSessionID, AppLegID, AudioDirection)
  /// The fingerprint matched and keys are installed.
  case keysInstalled(MediaSessionID, AppLegID, generation: Int, profile: String)
  case appLegFailed(MediaSessionID, AppLegID, AppLegFailure)
  /// 15 s without authenticated STUN, SRTP or SRTCP on the winner's leg; and its return.
  case appLegSilent(MediaSessionID, AppLegID)
  case appLegBack(MediaSessionID, AppLegID)
  /// RTP was seen and then absent for 20 s on an unheld trunk leg; and its return.
  case trunkSilent(MediaSessionID)
  case trunkBack(MediaSessionID)
  /// The first non-silent frame was forwarded in a direction, with the time since `.connect` (negative before).
  case firstAudio(MediaSessionID, AudioDirection, at: Instant)
  /// RTP came from an address that the trunk's `rtp_source` does not allow: reported once per session, with the setting that
  /// would accept it (`rtp_source: symmetric`, `media_peers: …`); every such packet is counted in `dropped`.
  case trunkSourceRejected(MediaSessionID, from: SocketAddress, allowedBy: String)
  /// `Limits.unknownPackets` packets in a row had a payload type that was not agreed on: the stream is dropped. Reported once per
  /// session.
  case trunkStreamUnknown(MediaSessionID, payloadType: UInt8, source: UInt32, from: SocketAddress)
  /// The trunk agreed on telephone-event, sends none, and sends digits as tones: reported once per session.
  case trunkSendsTones(MediaSessionID)
  /// A whole digit from the trunk (telephone-event or in-band), or from the app's RTP.
  case digit(MediaSessionID, from: AudioDirection, digit: Character, durationMilliseconds: Int)
  /// Every 5 s for a connected session.
  indirect case quality(MediaSessionID, MediaStatistics)
  /// The announcement of `.play` ended.
  case played(MediaSessionID)
  /// The answer to `.close`, or the end by an internal fault (`unexpected`).
  indirect case closed(MediaSessionID, MediaStatistics)
}

/// Counts of one direction of a session, as received.
public struct StreamStatistics: Sendable, Equatable {
  public var packets: UInt64 = 0
  public var bytes: UInt64 = 0
  public var lost: UInt64 = 0
  public var reordered: UInt64 = 0
  /// RFC 3550 §6.4.1 interarrival jitter in milliseconds.
  public var jitterMilliseconds: Double = 0
  /// Play-out counts of these packets; all zero while the stream is relayed.
  public var playout = PlayoutStatistics()
  /// Dropped: wrong source, bad tag, unknown payload type, before the trunk was set.
  public var dropped: UInt64 = 0
  /// Received packets of payload types that were not agreed on, and the last of these types.
  public var unknownPackets: UInt64 = 0
  public var unknownPayloadType: UInt8?
  /// Those of the unknown packets that replaced audio: a second or more of them without audio between. Keep-alives do not count.
  public var unheardPackets: UInt64 = 0
  /// Received packets of another source than the one that is played.
  public var otherSourcePackets: UInt64 = 0
  public var sentPackets: UInt64 = 0
  public var sentBytes: UInt64 = 0
  /// From the peer's receiver reports, if any came.
  public var roundTripMilliseconds: Double?
  public var reportedLossFraction: Double?
  /// ITU-T G.107 estimate, 1…4.5; nil without audio.
  public var meanOpinionScore: Double?
  /// RFC 3611 §4.7.2: the share of packets lost or discarded inside bursts and between them, 0…1, and the mean duration of both.
  public var burstDensity: Double = 0
  public var gapDensity: Double = 0
  public var burstMilliseconds: Double = 0
  public var gapMilliseconds: Double = 0
  /// G.107 §7.3: 1 is random loss.
  public var burstRatio: Double = 1
  /// Level of speech, and of the noise between words, in dBov; nil if nothing was decoded.
  public var speechLevel: Double?
  public var noiseLevel: Double?
  public init() {}
}

/// A session's statistics: `fromTrunk` is the stream that the trunk sent us (towards the app), `fromApp` the winner's.
public struct MediaStatistics: Sendable, Equatable {
  public var fromTrunk = StreamStatistics()
  public var fromApp = StreamStatistics()
  public var trunkEncoding: AudioEncoding?
  public var appEncoding: AudioEncoding?
  public var srtpProfile: String?
  /// The band of decoders and encoders; nil before any is used.
  public var band: AudioBand?
  public init() {}
}
