/// Settings for the points of R14 that Apple's documentation leaves open.
public struct CallDirectoryRules: Sendable, Equatable {
  /// Which callbacks a failed request causes, and in which order. Apple documents only the delegate's.
  public enum AfterFailure: Sendable, Equatable, CaseIterable { case delegate, delegateThenCompletion, completionThenDelegate }

  /// Limit of the entries of one extension, blocked and identified together. Apple documents no number.
  public var maximumEntries = 2_000_000
  /// In an incremental request, a number that is stored and not removed is a duplicate. Not documented; the strict reading.
  public var refusesStoredNumbers = true
  public var afterFailure = AfterFailure.delegateThenCompletion
  /// The code that the app receives for a request that the extension cancelled. Not documented.
  public var cancelledCode = CXErrorCodeCallDirectoryManagerError.Code.loadingInterrupted.rawValue

  public init() {}
}
