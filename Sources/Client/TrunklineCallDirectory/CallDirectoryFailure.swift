import Foundation

/// Why a load failed, for the app. iOS's codes are decoded as integers: some that Apple does not document occur (11, 102).
public struct CallDirectoryFailure: Error, Sendable, Equatable, CustomStringConvertible {
  /// What the app can do.
  public enum NextStep: Sendable, Equatable {
    /// Write the full directory, then reload.
    case writeAgain
    /// The user switches the extension on: `DirectoryExtensions.openSettings`.
    case enable
    /// Reload later, after a minute to an hour.
    case tryLater
    /// More extensions, or a lower `entriesPerExtension`.
    case split
    /// A mistake of the project: identifier, entitlement, or version of the SDK.
    case correctProject
  }
  /// `com.apple.CallKit.error.calldirectorymanager` for iOS's errors, `Trunkline.CallDirectory` for ours.
  public let domain: String
  /// The code within ``domain``. iOS uses some that Apple does not document: log it, do not switch over it.
  public let code: Int
  /// What the app can do about it.
  public let nextStep: NextStep
  /// What failed and what to do, in English.
  public let description: String

  /// Domain of errors that iOS made.
  public static let appleDomain = "com.apple.CallKit.error.calldirectorymanager"
  /// Domain of errors that this module made.
  public static let ourDomain = "Trunkline.CallDirectory"

  private init(_ domain: String, code: Int, nextStep: NextStep, description: String) {
    (self.domain, self.code, self.nextStep, self.description) = (domain, code, nextStep, description)
  }

  /// The system ended the request before it was complete.
  static let expired = Self(
    ourDomain, code: 1, nextStep: .tryLater,
    description: "iOS ended the extension before its request was complete. Reload later; the next load is a full one."
  )

  /// Converts any error that a callback of the Call Directory passes.
  public init(_ error: any Error) {
    if let error = error as? DirectoryError {
      self.init(file: error)
      return
    }
    let error = error as NSError
    let (step, text) =
      error.domain == Self.appleDomain
      ? Self.advice(error.code) : (.tryLater, "It is not one of Call Directory's errors: \(error.localizedDescription)")
    self.init(
      error.domain, code: error.code, nextStep: step,
      description: "Call Directory failed (\(error.domain) \(error.code)). \(text)")
  }

  /// A fault of the file, found by the extension or before the extension runs.
  init(file error: DirectoryError) {
    let (code, step): (Int, NextStep) =
      switch error {
      case .missing: (2, .writeAgain)
      case .damaged: (3, .writeAgain)
      case .versionNotNewer, .baseMissing, .mixedChunks: (4, .writeAgain)
      case .noAppGroup: (5, .correctProject)
      case .configuration: (6, .correctProject)
      case .formatVersion: (7, .correctProject)
      case .tooManyEntries, .tooManyChanges: (8, .split)
      case .system: (9, .tryLater)
      }
    self.init(Self.ourDomain, code: code, nextStep: step, description: error.description)
  }

  /// CXErrorCodeCallDirectoryManagerError.Code by number, so that a future code does not crash.
  private static func advice(_ code: Int) -> (NextStep, String) {
    switch code {
    case 0: (.tryLater, "iOS gives no reason. Reload later; if it stays, let the user switch the extension off and on.")
    case 1: (.correctProject, "There is no such extension: compare the identifier with the extension's bundle identifier.")
    case 2:
      (.tryLater, "Loading was interrupted. Reload later; if it stays, look for a crash or too much memory in the extension.")
    case 3: (.writeAgain, "Entries were out of order. Write the full directory again, then reload.")
    case 4:
      (.writeAgain, "An entry came twice. Reload: the next load replaces all entries; if it stays, write the directory again.")
    case 5: (.split, "iOS accepts no more entries. Lower entriesPerExtension and add an extension.")
    case 6: (.enable, "The extension is switched off. Ask the user to switch it on, by openSettings.")
    case 7: (.tryLater, "The extension is loading already. Reload when it has ended.")
    case 8: (.tryLater, "iOS refused a removal. Reload: the next load replaces all entries.")
    case 11:
      (.tryLater, "iOS's database is damaged (not documented). Reload later; if it stays, the user restarts the telephone.")
    default: (.tryLater, "The code is not documented. Reload later; if it stays, let the user switch the extension off and on.")
    }
  }

  /// For `cancelRequest`: an error that can cross to another process.
  var bridged: NSError { NSError(domain: domain, code: code, userInfo: [NSLocalizedDescriptionKey: description]) }
}
