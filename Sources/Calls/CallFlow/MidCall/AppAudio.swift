import TrunklineAppProtocol
import TrunklineMediaSession

/// What was requested for the app's side of the audio: hold, mute, translation, a file in its place, a group of calls. Each is on
/// or off, whatever the others are; the call sends the command if the input changed something.
///
/// | input | returns |
/// |---|---|
/// | `hold` | whether it has changed |
/// | `mute` | whether the gateway mutes. While the device translates, it mutes its microphone itself |
/// | `translate` | whether it has begun or ended; new languages alone change no audio |
/// | `play`: a program's file, or nil | whether something begins or stops: only a program's own file is stopped |
/// | `enter` | nil: it is in this group; else whether it was in none |
/// | `leave` | whether it was in a group |
struct AppAudio {
  private(set) var isHeld = false
  private(set) var isMuted = false
  /// The request by which the device translates; nil: it does not.
  private(set) var translation: CallTranslate?
  /// The group of calls whose trunks hear each other; nil: the call is in none.
  private(set) var group: MediaGroupID?
  /// A program plays a file to the trunk.
  private var playsFile = false

  mutating func hold(_ isOn: Bool) -> Bool {
    defer { isHeld = isOn }
    return isHeld != isOn
  }

  mutating func mute(_ isOn: Bool) -> Bool {
    isMuted = isOn
    return translation == nil
  }

  mutating func translate(_ request: CallTranslate) -> Bool {
    let was = translation != nil
    translation = request.on ? request : nil
    return was != request.on
  }

  mutating func play(_ file: Announcement?) -> Bool {
    defer { playsFile = file != nil }
    return playsFile || file != nil
  }

  /// The file was played to its end, or another sound has replaced it.
  mutating func fileEnded() { playsFile = false }

  mutating func enter(_ group: MediaGroupID) -> Bool? {
    guard self.group != group else { return nil }
    defer { self.group = group }
    return self.group == nil
  }

  mutating func leave() -> Bool {
    defer { group = nil }
    return group != nil
  }
}
