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
  public var bridgeTarget: MediaSessionID? { partners.bridge }

  /// This session's trunk audio of the last `tick`, for `playBridged` of the other half of a diverted call. HOT
  public var bridgedFrame: BridgedFrame {
    mutating get { BridgedFrame(trunkBand: trunkBand, band: band, samples: UnsafePointer(frame)) }
  }

  /// Sends the other half's trunk audio of its last `tick` to this session's trunk. Our digits and announcements take precedence.
  /// HOT
  public mutating func playBridged(_ other: BridgedFrame, at now: Instant, into output: inout MediaOutput) {
    if partners.learn(other.trunkBand) { updateRelay() }
    guard !state.isClosed, trunk.isSet, trunk.sends, !announcer.isPlaying, uplink.sender.isIdle,
      let destination = trunk.destination
    else {
      return
    }
    guard other.band != band else {
      taps.record(.appToTrunk, other.samples, band, at: now)
      return sendFrame(other.samples, to: destination, at: now, into: &output)
    }
    // The other half learns our band with our next frame.
    var converter = BandInterpolator()
    converter.convert(other.samples, other.band.samplesPerTick, from: other.band, to: band, into: frame)
    taps.record(.appToTrunk, frame, band, at: now)
    sendFrame(frame, to: destination, at: now, into: &output)
  }

  mutating func bridge(to other: MediaSessionID, connects: Bool, at now: Instant) {
    partners.bridge(to: other)
    announcer.stop()
    if connects, state.connect(at: now) { reporting.start(at: now) }
    updateRelay()
  }

  /// Writes the trunk's audio to `frame`, for the other session: noise if there is none, so that its stream has no gap. HOT
  mutating func tickBridge(at now: Instant, into output: inout MediaOutput) {
    if !uplink.sender.isIdle, trunk.isSet, trunk.sends, let destination = trunk.destination {
      tickDigits(to: destination, at: now, into: &output)
    }
    let hasAudio = downlink.receiver.pull(into: frame, band, at: now)
    if downlink.tones.isListening {
      hearTones(frame, count: hasAudio ? band.samplesPerTick : 0, band: band, at: now, into: &output)
    }
    if hasAudio { downlink.gate.measure(frame, band) } else { downlink.gate.fillNoise(frame, band) }
    taps.record(.trunkToApp, frame, band, at: now)
  }

  mutating func play(_ announcement: Announcement?) {
    guard announcer.play(announcement) else { return }
    clearPacketizer()
    // relaying stops: it may resume after the end, with the app's next pause
    updateRelay()
  }

  /// Plays the next 20 ms of the announcement. A held trunk hears nothing while the position advances. The app's audio is dropped
  /// meanwhile. False after the last frame, with `played`: this tick is the app's again.
  mutating func tickPlayback(at now: Instant, into output: inout MediaOutput) -> Bool {
    guard announcer.isPlaying else { return false }
    guard trunk.isSet else { return true }
    if announcer.isOver(band) {
      output.events.append(.played(id))
      return false
    }
    if !state.isConnected {
      // first words of the callee, while the caller hears ringback
      if !uplink.firstWords.isEmpty { keepUplink(at: now) }
    } else if partners.bridge == nil {
      _ = uplink.receiver.pull(into: frame, band, at: now)
    }
    announcer.write(into: frame, band)
    taps.record(.appToTrunk, frame, band, at: now)
    guard trunk.sends, let destination = trunk.destination else { return true }
    sendFrame(frame, to: destination, at: now, into: &output)
    return true
  }
}
