import Bytes
import JitterBuffer
import RTP

/// What a media session needs before it exists; answered at once by the runtime.
public struct MediaReservation: Sendable {
  public let session: MediaSessionID
  /// Where the trunk sends its RTP; RTCP at port + 1.
  public let trunkAddress: SocketAddress
  /// Host candidates of the app leg: every advertised address with the UDP port of the user's media thread.
  public var appCandidates: [SocketAddress]
  /// SHA-256 of the gateway's DTLS certificate.
  public let fingerprint: [UInt8]
  /// Of the media: sessions of one thread can be in a group.
  public let thread: Int

  public init(
    session: MediaSessionID, trunkAddress: SocketAddress, appCandidates: [SocketAddress], fingerprint: [UInt8], thread: Int = 0
  ) {
    self.thread = thread
    (self.session, self.trunkAddress, self.appCandidates, self.fingerprint) = (session, trunkAddress, appCandidates, fingerprint)
  }
}

public enum AudioDirection: UInt8, Sendable, CaseIterable { case trunkToApp, appToTrunk }

/// Why an app leg's media cannot come up; the text is for the log and the record.
public enum AppLegFailure: Error, Sendable, Equatable {
  case fingerprintMismatch
  case dtls(String)
  case noCommonProfile
}

/// Media thread → control. Few per call; never one per packet. `indirect`: statistics are ten times as large as everything else, and every
/// event, input and message of control would have their size.
public enum MediaEvent: Sendable {
  /// A pair was nominated (again): remote address and smoothed round trip if known.
  case nominated(MediaSessionID, AppLegID, generation: Int, remote: SocketAddress)
  /// The app's packets come from another address, and what was nominated is silent: it is sent to there.
  case appMoved(MediaSessionID, AppLegID, to: SocketAddress)
  /// The app sends what does not arrive, or does not get what is sent, although the other way works, for 3 s; told again while it lasts.
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
  /// RTP came from an address the trunk's `rtp_source` does not allow: told once per session, with the setting that would take it
  /// (`rtp_source: symmetric`, `media_peers: …`); every such packet is counted in `dropped`.
  case trunkSourceRejected(MediaSessionID, from: SocketAddress, allowedBy: String)
  /// `Limits.unknownPackets` packets in a row had a payload type that was not agreed on: the stream is dropped. Reported once per session.
  case trunkStreamUnknown(MediaSessionID, payloadType: UInt8, source: UInt32, from: SocketAddress)
  /// The trunk agreed on telephone-event, sends none, and sends digits as tones: told once per session.
  case trunkSendsTones(MediaSessionID)
  /// A whole digit from the trunk (telephone-event or in-band), or from the app's RTP.
  case digit(MediaSessionID, from: AudioDirection, digit: Character, durationMilliseconds: Int)
  /// Every 5 s for a connected session.
  indirect case quality(MediaSessionID, MediaStatistics)
  /// The announcement of `.play` is over.
  case played(MediaSessionID)
  /// The answer to `.close`, or the end by a fault of ours (`unexpected`).
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
  /// What play-out did with the packets; nothing while the stream is relayed.
  public var playout = PlayoutStatistics()
  /// Dropped: wrong source, bad tag, unknown payload type, before the trunk was set.
  public var dropped: UInt64 = 0
  /// Of those received, packets of payload types that were not agreed on, and the last of these types.
  public var unknownPackets: UInt64 = 0
  public var unknownPayloadType: UInt8?
  /// Of those, packets instead of audio: a second of them and more with nothing heard between. Keep-alives are not counted.
  public var unheardPackets: UInt64 = 0
  /// Of those received, packets of a further source beside the one that was heard.
  public var otherSourcePackets: UInt64 = 0
  public var sentPackets: UInt64 = 0
  public var sentBytes: UInt64 = 0
  /// From the peer's receiver reports, if any came.
  public var roundTripMilliseconds: Double?
  public var reportedLossFraction: Double?
  /// ITU-T G.107 estimate, 1…4.5; nil without audio.
  public var meanOpinionScore: Double?
  /// RFC 3611 §4.7.2: the part of packets lost or discarded inside bursts and between them, 0…1, and how long both last on the
  /// mean.
  public var burstDensity: Double = 0
  public var gapDensity: Double = 0
  public var burstMilliseconds: Double = 0
  public var gapMilliseconds: Double = 0
  /// G.107 §7.3: 1 is random loss.
  public var burstRatio: Double = 1
  /// Of speech, and of the noise between the words, in dBov; nil where nothing was decoded.
  public var speechLevel: Double?
  public var noiseLevel: Double?
  public init() {}
}

/// A session's statistics: `fromTrunk` is what the trunk sent us (towards the app), `fromApp` what the winner sent.
public struct MediaStatistics: Sendable, Equatable {
  public var fromTrunk = StreamStatistics()
  public var fromApp = StreamStatistics()
  public var trunkEncoding: AudioEncoding?
  public var appEncoding: AudioEncoding?
  public var srtpProfile: String?
  /// Of what is decoded and encoded; nil as long as nothing is.
  public var band: AudioBand?
  public init() {}
}
