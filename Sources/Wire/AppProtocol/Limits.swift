/// The named limits of this module: every bound on a message.
public enum Limits {
  /// Bytes of one text frame (docs/reference/protocol.md, Frames).
  public static let frameBytes = 65_536
  /// Objects and arrays inside one another (docs/reference/protocol.md, Frames).
  public static let jsonDepth = 16
  /// Characters of a display name, handle, device text or account.
  public static let textCharacters = 256
  /// Characters of a JWT, wake or resume token.
  public static let tokenCharacters = 8_192
  /// Characters of the address of a node.
  public static let urlCharacters = 2_048
  /// Entries of `caps` and `acct`.
  public static let listEntries = 64
  /// The longest `ageMs`, `timeoutMs` that a client may state, and the longest `spreadMs`, `afterMs` that is read.
  public static let spanMilliseconds = 86_400_000
  /// The longest `pushMs`, `reportMs`, `openMs` that is accepted; a longer one is read as absent.
  public static let appStepMilliseconds = 0...600_000
  /// Characters of a language tag (RFC 5646 §4.4.1).
  public static let languageCharacters = 35
  /// Digits of one `call.dtmf`.
  public static let digits = 1...64
  public static let digitMilliseconds = 40...6_000
  public static let digitGapMilliseconds = 40...1_000
  /// The range of `seq` and `ack`: integers that every JSON reader holds exactly.
  public static let sequence = 1...9_007_199_254_740_991
  /// A version of a directory, and a number in it: E.164 as one integer.
  public static let directoryVersion = 0...9_007_199_254_740_991
  public static let directoryNumber = 0...999_999_999_999_999
  /// Bytes of a label of a directory; iOS accepts no more.
  public static let labelBytes = 255
  /// Characters of the text of `dir.find`, and names of its answer.
  public static let findCharacters = 128
  public static let findNames = 1...50
  /// Calls of one `hist.list`.
  public static let historyPage = 1...50
  /// Parameters of a call, the octets of a name, and of all names and values.
  public static let parameters = 16
  public static let parameterNameBytes = 64
  public static let parameterBytes = 1_024
  /// The highest `gen`.
  public static let generation = 1...1_000_000
}
