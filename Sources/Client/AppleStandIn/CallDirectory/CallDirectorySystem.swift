/// What iOS does with the entries of Call Directory extensions (R14): loads them on request, checks them, and looks numbers up
/// without running an extension. No clock, no I/O, no threads; `CXCallDirectoryManager` is its shell.
///
/// | extension | reload | entry | complete | cancel | interrupt |
/// |---|---|---|---|---|---|
/// | not installed | error 1 | – | – | – | – |
/// | disabled | error 6 | – | – | – | – |
/// | idle | loading | – | expired | – | – |
/// | loading | error 7 | staged; the first fault is kept | stored, or the fault | the cancelled code | error 2 |
///
/// A request that fails leaves the stored entries unchanged. A full request replaces them; an incremental one changes them. A
/// request is incremental only if `isIncremental` was read before its first entry, and entries were stored before.
public struct CallDirectorySystem: Sendable {
  public typealias Code = CXErrorCodeCallDirectoryManagerError.Code
  public enum List: Sendable, CaseIterable { case blocking, identification }
  /// Raw values are those of `CXCallDirectoryManager.EnabledStatus`.
  public enum Status: Int, Sendable { case unknown = 0, disabled, enabled }
  public struct RequestID: Hashable, Sendable { let raw: Int }
  /// What the call screen shows for a number.
  public struct Match: Sendable, Equatable {
    public var label: String?
    public var isBlocked: Bool
    public init(label: String?, isBlocked: Bool) { (self.label, self.isBlocked) = (label, isBlocked) }
  }
  /// An error code, possibly one that Apple's enum does not have.
  public struct Failure: Error, Equatable, Sendable {
    public var code: Int
    init(_ code: Int) { self.code = code }
    init(_ code: Code) { self.code = code.rawValue }
  }
  public enum Outcome: Equatable, Sendable {
    case stored
    case failed(Failure)
    /// The request had already ended.
    case expired
  }

  struct Staged: Sendable {
    let id: RequestID
    var isIncremental = false
    var hasEntries = false
    var removesAll: [List: Bool] = [:]
    var removed: [List: Set<Int64>] = [:]
    var blocking = CallDirectoryTable()
    var identification = CallDirectoryTable()
    var fault: Failure?
  }
  struct Installed: Sendable {
    var status = Status.enabled
    var hasData = false
    var blocking = CallDirectoryTable()
    var identification = CallDirectoryTable()
    var labels: [String] = []
    var labelIndex: [String: UInt32] = [:]
    var staged: Staged?
    var injected: Failure?
  }

  public var rules: CallDirectoryRules
  private var extensions: [String: Installed] = [:]
  /// Extensions in the order of their installation: the first label wins.
  private var order: [String] = []
  private var lastRequest = 0

  public init(_ rules: CallDirectoryRules = CallDirectoryRules()) { self.rules = rules }

  // MARK: actions of the user and the test

  /// An extension is enabled when it is installed, which most tests need; on a telephone it is disabled.
  public mutating func install(_ identifier: String, _ status: Status = .enabled) {
    if extensions[identifier] == nil { order.append(identifier) }
    extensions[identifier] = Installed(status: status)
  }
  /// The switch in the system's settings. Switching off drops the entries: the next request is full.
  public mutating func set(_ identifier: String, _ status: Status) {
    guard let old = extensions[identifier] else { return }
    if status != .enabled { extensions[identifier] = Installed(status: status, staged: old.staged) }
    extensions[identifier]?.status = status
  }
  /// The system loses the extension's entries, as after a repair of its database.
  public mutating func forget(_ identifier: String) { extensions[identifier]?.hasData = false }
  /// The next request ends with this code; undocumented ones (11, 102) have been seen.
  public mutating func failNext(_ identifier: String, code: Int) { extensions[identifier]?.injected = Failure(code) }

  public func status(_ identifier: String) throws(Failure) -> Status {
    guard let found = extensions[identifier] else { throw Failure(.noExtensionFound) }
    return found.status
  }
  /// Number of stored entries of an extension.
  public func count(_ identifier: String, _ list: List) -> Int {
    list == .blocking ? extensions[identifier]?.blocking.count ?? 0 : extensions[identifier]?.identification.count ?? 0
  }
  /// What an incoming call from this number shows. No extension runs for it.
  public func match(_ number: Int64) -> Match {
    var match = Match(label: nil, isBlocked: false)
    for identifier in order {
      guard let found = extensions[identifier], found.status == .enabled else { continue }
      if found.blocking.position(of: number) != nil { match.isBlocked = true }
      if match.label == nil, let position = found.identification.position(of: number) {
        match.label = found.labels[Int(found.identification.labels[position])]
      }
    }
    return match
  }

  // MARK: a request

  public mutating func begin(_ identifier: String) throws(Failure) -> RequestID {
    guard let found = extensions[identifier] else { throw Failure(.noExtensionFound) }
    guard found.status == .enabled else { throw Failure(.extensionDisabled) }
    guard found.staged == nil else { throw Failure(.currentlyLoading) }
    lastRequest += 1
    let id = RequestID(raw: lastRequest)
    extensions[identifier]?.staged = Staged(id: id)
    return id
  }

  private mutating func stage(_ identifier: String, _ request: RequestID, _ change: (inout Staged) -> Void) {
    guard extensions[identifier]?.staged?.id == request, extensions[identifier]?.staged?.fault == nil else { return }
    extensions[identifier]?.staged.modify(change)
  }

  /// False if it is read after the first entry: the request is then full.
  public mutating func isIncremental(_ identifier: String, _ request: RequestID) -> Bool {
    let hasData = extensions[identifier]?.hasData == true
    stage(identifier, request) { if !$0.hasEntries { $0.isIncremental = hasData } }
    return extensions[identifier]?.staged?.isIncremental == true && extensions[identifier]?.staged?.id == request
  }

  public mutating func add(_ identifier: String, _ request: RequestID, blocked number: Int64) {
    stage(identifier, request) {
      $0.hasEntries = true
      $0.fault = $0.blocking.append(number).map { Failure($0) }
    }
  }

  public mutating func add(_ identifier: String, _ request: RequestID, identified number: Int64, label: String) {
    guard let index = extensions[identifier].modify({ $0.index(of: label) }) else { return }
    stage(identifier, request) {
      $0.hasEntries = true
      $0.fault = $0.identification.append(number, label: index).map { Failure($0) }
    }
  }

  /// `number` nil: all entries of the list.
  public mutating func remove(_ identifier: String, _ request: RequestID, _ number: Int64?, from list: List) {
    stage(identifier, request) {
      $0.hasEntries = true
      guard $0.isIncremental else { return $0.fault = Failure(.unexpectedIncrementalRemoval) }
      if let number { $0.removed[list, default: []].insert(number) } else { $0.removesAll[list] = true }
    }
  }

  public mutating func complete(_ identifier: String, _ request: RequestID) -> Outcome {
    guard var found = extensions[identifier], let staged = found.staged, staged.id == request else { return .expired }
    found.staged = nil
    let fault = staged.fault ?? found.injected ?? found.store(staged, rules)
    found.staged = nil
    found.injected = nil
    extensions[identifier] = found
    return fault.map { .failed($0) } ?? .stored
  }

  /// The extension cancels its request.
  public mutating func cancel(_ identifier: String, _ request: RequestID) -> Outcome {
    guard extensions[identifier]?.staged?.id == request else { return .expired }
    extensions[identifier]?.staged = nil
    return .failed(Failure(rules.cancelledCode))
  }

  /// iOS ends the extension's process while it loads. Nil: the extension was not loading.
  public mutating func interrupt(_ identifier: String) -> Failure? {
    guard extensions[identifier]?.staged != nil else { return nil }
    extensions[identifier]?.staged = nil
    return Failure(.loadingInterrupted)
  }
}

extension CallDirectorySystem.Installed {
  fileprivate mutating func index(of label: String) -> UInt32 {
    if let index = labelIndex[label] { return index }
    let index = UInt32(labels.count)
    labels.append(label)
    labelIndex[label] = index
    return index
  }

  /// - Returns: why nothing is stored; nil: the entries are stored.
  fileprivate mutating func store(
    _ staged: CallDirectorySystem.Staged, _ rules: CallDirectoryRules
  ) -> CallDirectorySystem.Failure? {
    func base(_ list: CallDirectorySystem.List, _ table: CallDirectoryTable) -> CallDirectoryTable {
      staged.isIncremental && staged.removesAll[list] != true ? table : CallDirectoryTable()
    }
    let blocked = base(.blocking, blocking).merged(removing: staged.removed[.blocking] ?? [], adding: staged.blocking)
    let identified = base(.identification, identification)
      .merged(removing: staged.removed[.identification] ?? [], adding: staged.identification)
    if rules.refusesStoredNumbers, blocked.duplicate || identified.duplicate { return .init(.duplicateEntries) }
    if blocked.table.count + identified.table.count > rules.maximumEntries { return .init(.maximumEntriesExceeded) }
    blocking = blocked.table
    identification = identified.table
    hasData = true
    return nil
  }
}

extension Optional {
  /// Changes the value in place, without copying its storage.
  fileprivate mutating func modify<Result>(_ change: (inout Wrapped) -> Result) -> Result? {
    switch self {
    case .some(var value):
      self = nil
      let result = change(&value)
      self = value
      return result
    case nil: return nil
    }
  }
}
