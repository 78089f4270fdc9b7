/// R14 where Apple's words leave room: each as a setting.
public struct CallDirectoryRules: Sendable, Equatable {
  /// Which callbacks a failed request gets, and in which order. Apple documents the delegate's only.
  public enum AfterFailure: Sendable, Equatable, CaseIterable { case delegate, delegateThenCompletion, completionThenDelegate }

  /// Entries of one extension, blocked and identified together. Apple gives no number.
  public var maximumEntries = 2_000_000
  /// In an incremental request, a number that is stored and not removed is a duplicate. Not documented; the strict reading.
  public var refusesStoredNumbers = true
  public var afterFailure = AfterFailure.delegateThenCompletion
  /// The code that the app gets for a request that the extension cancelled. Not documented.
  public var cancelledCode = CXErrorCodeCallDirectoryManagerError.Code.loadingInterrupted.rawValue

  public init() {}
}
