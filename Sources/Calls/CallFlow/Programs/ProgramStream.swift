import CallModel
import TrunklineMediaSession

/// The stream that has a call in place of an app.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | none | `begin` | opening | the audio that the stream exchanges |
/// | opening | `opened` | open | true |
/// | open, none | `opened` | same | false |
/// | opening, open | `end` | none | true: the program is to be notified, unless it has ended it |
/// | none | `end` | none | false |
struct ProgramStream {
  private enum State { case none, opening(AudioStream), open(AudioStream) }
  private var state = State.none
  /// The URL of the stream that has or had the call, without its query.
  private(set) var url: String?

  /// Of the present stream; nil: there is none.
  var audio: AudioStream? {
    switch state {
    case .none: nil
    case .opening(let audio), .open(let audio): audio
    }
  }
  var isOpen: Bool { if case .open = state { true } else { false } }

  mutating func begin(_ target: StreamTarget) -> AudioStream {
    let audio = AudioStream()
    state = .opening(audio)
    url = target.url.withoutQuery
    return audio
  }

  mutating func opened() -> Bool {
    guard case .opening(let audio) = state else { return false }
    state = .open(audio)
    return true
  }

  mutating func end() -> Bool {
    guard audio != nil else { return false }
    state = .none
    return true
  }
}
