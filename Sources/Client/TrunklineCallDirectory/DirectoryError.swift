/// Why a directory cannot be written or loaded. The description says what to do.
public enum DirectoryError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What is wrong with a file.
  public enum Damage: String, Sendable {
    /// Shorter than a header.
    case tooShort
    /// Not a file of this format.
    case notADirectory
    /// The header's checksum does not match.
    case headerChecksum
    /// The sections do not fill the file.
    case length
    /// The checksum of the bytes after the header does not match.
    case checksum
    /// More entries or labels than their sections can hold.
    case counts
    /// The shared labels cannot be read.
    case dictionary
    /// An entry that cannot be read, or is not a telephone number.
    case entry
    /// Numbers that do not ascend.
    case order
    /// A label that is not text, or a reference to a missing one.
    case label
    /// Bytes after the last entry.
    case trailingBytes
  }
  /// The app group's folder: the name is wrong, or the target has no entitlement for it.
  case noAppGroup(String)
  /// No file has been written for this extension.
  case missing(String)
  /// The file is truncated, changed, or not of this format.
  case damaged(String, Damage)
  /// Written by a newer version of the SDK.
  case formatVersion(Int)
  /// An identifier that cannot be a file's name, a duplicate, no identifier, or a limit below 1.
  case configuration(String)
  /// A version that is not above the stored one.
  case versionNotNewer(given: UInt64, stored: UInt64)
  /// A difference to a version that is not stored; `stored` is nil if there is none that can be changed.
  case baseMissing(needed: UInt64, stored: UInt64?)
  /// Chunks of one call with different versions or bases.
  case mixedChunks
  /// More additions and removals than ``DirectoryLimits/changes``.
  case tooManyChanges
  /// More entries than all extensions together may hold.
  case tooManyEntries(count: Int, extensions: Int, needed: Int)
  /// A system call failed.
  case system(call: String, path: String, errno: Int32)

  /// What is wrong and what to do, in English.
  public var description: String {
    switch self {
    case .noAppGroup(let group):
      "The app group \(group) has no folder: add the App Groups capability with this name to the app and to the extension."
    case .missing(let file): "\(file) has not been written: let the app write the directory, then reload the extension."
    case .damaged(let file, let damage):
      "\(file) is damaged (\(damage.rawValue)): write the full directory again, then reload the extension."
    case .formatVersion(let version):
      "The directory has format \(version), which this version does not know: build app and extension with the same SDK."
    case .configuration(let text): "\(text): correct the configuration of the directory."
    case .versionNotNewer(let given, let stored):
      "Version \(given) is not newer than \(stored), which is stored: nothing needs to be done, or the server's numbers went back."
    case .baseMissing(let needed, let stored):
      "The change needs version \(needed), and \(stored.map { "\($0)" } ?? "none") is stored: ask for the full directory."
    case .mixedChunks: "The chunks are of different versions: apply those of one version together."
    case .tooManyChanges: "More than \(DirectoryLimits.changes) changes at once: send fewer."
    case .tooManyEntries(let count, let extensions, let needed):
      "\(count) entries do not fit into \(extensions) extensions: add extensions to the app until there are \(needed), or send fewer."
    case .system(let call, let path, let errno):
      "\(call) of \(path) failed with errno \(errno): look for a full disk or missing rights, then try again."
    }
  }
}
