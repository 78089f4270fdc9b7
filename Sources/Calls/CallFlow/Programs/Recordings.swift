import CallModel
import TrunklineAppProtocol

/// The recordings of a call, one at a time.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | idle | `start` | running | the new file; nil and idle: the call has as many as it may |
/// | running | `start` | running | nil |
/// | running | `stop` | idle | the file that is to be closed |
/// | running | `closed`, of this file | idle | true: nothing reads the audio any more |
/// | idle | `stop`, `closed` | idle | nil, false |
struct Recordings {
  /// Names of all recordings, in order of their start.
  private(set) var files: [String] = []
  private(set) var isRunning = false

  mutating func start(_ call: CallID, suffix: String) -> String? {
    guard !isRunning, files.count < Limits.recordingsPerCall else { return nil }
    let file = "\(call)-\(files.count + 1).\(suffix)"
    files.append(file)
    isRunning = true
    return file
  }

  mutating func stop() -> String? {
    guard isRunning else { return nil }
    isRunning = false
    return files.last
  }

  /// The writer has closed a file itself.
  mutating func closed(_ file: String) -> Bool {
    guard isRunning, files.last == file else { return false }
    isRunning = false
    return true
  }
}
