import AudioCodecs
import Bytes

/// Recorded audio that a caller hears whom nobody answers: 8 kHz mono, one value for all calls that play it. Its storage is
/// freed with the last of them.
public final class Announcement: Sendable {
  public let samples: [Int16]
  public init(samples: [Int16]) { self.samples = samples }
}

/// How far a caller is in an announcement.
struct Playback {
  let announcement: Announcement
  var position = 0
}

// A diverted call has two sessions on one thread, each with a trunk leg and no app: what a tick of one hears, the other sends.
// Through play-out buffers and encoders on both sides, so that neither carrier sees the other's jitter, numbers or codec.

extension MediaSession {
  /// Whose trunk hears this session's trunk; nil as long as it is no half of a diverted call.
  public var bridgeTarget: MediaSessionID? { bridge }

  /// What this session's trunk said in the last `tick`: `Frame.samples` of it, valid until the session is used again. HOT
  public var bridgedFrame: UnsafePointer<Int16> { UnsafePointer(frame) }

  /// 20 ms of the other half of a diverted call for this session's trunk. Digits of ours and announcements go before. HOT
  public mutating func playBridged(_ samples: UnsafePointer<Int16>, at now: Instant, into output: inout MediaOutput) {
    guard !isClosed, trunk.isSet, trunk.sends, playback == nil, uplink.sender.isIdle, let destination = trunk.destination else {
      return
    }
    sendFrame(samples, to: destination, at: now, into: &output)
  }

  mutating func bridge(to other: MediaSessionID, connects: Bool, at now: Instant) {
    bridge = other
    playback = nil
    if connects, connectedAt == nil {
      connectedAt = now
      nextQuality = now + Limits.reportInterval
    }
    updateRelay()
  }

  /// The trunk's audio into `frame`, for the other session: noise where there is none, so that its stream has no gap. HOT
  mutating func tickBridge(at now: Instant, into output: inout MediaOutput) {
    if !uplink.sender.isIdle, trunk.isSet, trunk.sends, let destination = trunk.destination {
      tickDigits(to: destination, at: now, into: &output)
    }
    let hasAudio = downlink.receiver.pull(into: frame, at: now)
    if downlink.tones != nil { hearTones(frame, hasAudio ? Frame.samples : 0, at: now, into: &output) }
    if hasAudio { downlink.gate.measure(frame) } else { downlink.gate.fillNoise(frame) }
  }

  mutating func play(_ announcement: Announcement) {
    playback = Playback(announcement: announcement)
    clearPacketizer()
  }

  /// The next 20 ms of the announcement; after the last, `played`. A trunk that is held hears nothing, and its time goes by.
  mutating func tickPlayback(at now: Instant, into output: inout MediaOutput) {
    guard let playing = playback, trunk.isSet else { return }
    let samples = playing.announcement.samples
    let count = min(Frame.samples, samples.count - playing.position)
    guard count > 0 else {
      playback = nil
      output.events.append(.played(id))
      return
    }
    for index in 0..<count { frame[index] = samples[playing.position + index] }
    (frame + count).update(repeating: 0, count: Frame.samples - count)
    playback?.position += count
    guard trunk.sends, let destination = trunk.destination else { return }
    sendFrame(frame, to: destination, at: now, into: &output)
  }
}
