// The named limits of this module: every bound on a table or text.
package enum Limits {
  /// Bytes of a stream's URL.
  package static let urlBytes = 2_048
  /// A table of imported numbers: all numbers, numbers of one user, digits of one (E.164), bytes of a user's id (as long as `sub`
  /// may be).
  package static let tableNumbers = 2_000_000
  package static let tableNumbersPerUser = 100
  package static let tableDigits = 15
  package static let tableUserBytes = 256
  /// Users and numbers that login tokens have granted.
  package static let grantedUsers = 200_000
  package static let tableGrantedNumbers = 1_000_000
  /// A grant that no token has named for `grantSeconds` may be removed; the time of its last token is stored again when it has
  /// moved by more than `grantSeenSeconds`.
  package static let grantSeconds: Int64 = 30 * 86_400
  package static let grantSeenSeconds: Int64 = 3_600
  /// Users whose grants are compared, applied, checked, restored or evicted in one step, and about the octets of their grants.
  package static let grantsPerStep = 500
  package static let grantOctetsPerStep = 65_536
  /// Characters of a number or name that go into messages and records.
  package static let textCharacters = 128
  /// Plausible values of an app's `stats`: round trip and jitter, bytes, concealed audio of a call, MOS, a codec's name.
  package static let statsMilliseconds = 0.0...60_000
  package static let statsBytes: ClosedRange<Int64> = 0...1_000_000_000_000
  package static let concealedMilliseconds = 0.0...86_400_000
  package static let opinionScore = 1.0...5
  package static let codecCharacters = 1...64
}
