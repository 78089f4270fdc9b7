import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// Recorded audio for a caller whose call is not answered, or that a program plays in a call: one value for all calls that play
/// it. Its storage is freed with the last of them.
public final class Announcement: Sendable, Equatable {
  public let recording: Recording
  public init(_ recording: Recording) { self.recording = recording }
  /// Compares identity, not sound.
  public static func == (one: Announcement, other: Announcement) -> Bool { one === other }

  public var milliseconds: Int { recording.count(.narrowband) / 8 }
}

/// The position in an announcement.
struct Playback {
  let announcement: Announcement
  /// In ticks.
  var position = 0
}

/// One tick's audio of one half of a diverted call, for the other half. Borrowed: valid until its session is used again.
public struct BridgedFrame {
  /// Nil before the trunk is set.
  let trunkBand: AudioBand?
  let band: AudioBand
  /// `band.samplesPerTick` samples.
  let samples: UnsafePointer<Int16>
}

// A diverted call has two sessions on one thread, each with a trunk leg and no app: each sends the audio of the other's ticks. It
// goes through play-out buffers and encoders on both sides, so that neither carrier sees the other's jitter, numbers or codec.

extension MediaSession {
  /// The session whose trunk hears this session's trunk; nil if this is not half of a diverted call.
  public var bridgeTarget: MediaSessionID? { bridge }

  /// This session's trunk audio of the last `tick`, for `playBridged` of the other half of a diverted call. HOT
  public var bridgedFrame: BridgedFrame {
    mutating get { BridgedFrame(trunkBand: trunkBand, band: band, samples: UnsafePointer(frame)) }
  }

  /// Sends the other half's trunk audio of its last `tick` to this session's trunk. Our digits and announcements take precedence.
  /// HOT
  public mutating func playBridged(_ other: BridgedFrame, at now: Instant, into output: inout MediaOutput) {
    if other.trunkBand != bridgeBand {
      bridgeBand = other.trunkBand
      updateRelay()
    }
    guard !isClosed, trunk.isSet, trunk.sends, playback == nil, uplink.sender.isIdle, let destination = trunk.destination else {
      return
    }
    guard other.band != band else {
      tap?.put(TappedFrame(.appToTrunk, band, at: now), other.samples)
      return sendFrame(other.samples, to: destination, at: now, into: &output)
    }
    // The other half learns our band with our next frame.
    var converter = BandInterpolator()
    converter.convert(other.samples, other.band.samplesPerTick, from: other.band, to: band, into: frame)
    tapFrame(.appToTrunk, at: now)
    sendFrame(frame, to: destination, at: now, into: &output)
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

  /// Writes the trunk's audio to `frame`, for the other session: noise if there is none, so that its stream has no gap. HOT
  mutating func tickBridge(at now: Instant, into output: inout MediaOutput) {
    if !uplink.sender.isIdle, trunk.isSet, trunk.sends, let destination = trunk.destination {
      tickDigits(to: destination, at: now, into: &output)
    }
    let hasAudio = downlink.receiver.pull(into: frame, band, at: now)
    if downlink.tones != nil { hearTones(frame, hasAudio ? band.samplesPerTick : 0, band, at: now, into: &output) }
    if hasAudio { downlink.gate.measure(frame, band) } else { downlink.gate.fillNoise(frame, band) }
    tapFrame(.trunkToApp, at: now)
  }

  mutating func play(_ announcement: Announcement?) {
    if announcement == nil, playback == nil { return }
    playback = announcement.map { Playback(announcement: $0) }
    clearPacketizer()
    // relaying stops: it may resume after the end, with the app's next pause
    updateRelay()
  }

  /// Plays the next 20 ms of the announcement. A held trunk hears nothing while the position advances. The app's audio is dropped
  /// meanwhile. False after the last frame, with `played`: this tick is the app's again.
  mutating func tickPlayback(at now: Instant, into output: inout MediaOutput) -> Bool {
    guard let playing = playback else { return false }
    guard trunk.isSet else { return true }
    let samples = playing.announcement.recording.samples(band)
    let start = playing.position * band.samplesPerTick
    let count = min(band.samplesPerTick, samples.count - start)
    guard count > 0 else {
      playback = nil
      output.events.append(.played(id))
      return false
    }
    if connectedAt == nil {
      // first words of the callee, while the caller hears ringback
      if uplink.kept != nil { keepUplink(at: now) }
    } else if bridge == nil {
      _ = uplink.receiver.pull(into: frame, band, at: now)
    }
    for index in 0..<count { frame[index] = samples[start + index] }
    (frame + count).update(repeating: 0, count: band.samplesPerTick - count)
    playback?.position += 1
    tapFrame(.appToTrunk, at: now)
    guard trunk.sends, let destination = trunk.destination else { return true }
    sendFrame(frame, to: destination, at: now, into: &output)
    return true
  }
}
