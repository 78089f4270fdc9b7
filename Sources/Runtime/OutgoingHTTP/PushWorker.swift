import Logging
import PushPolicy
import TrunklineBytes
import TrunklinePlatform

/// The work of the push thread: mailbox → machine → transfers → machine.
final class PushWorker: HTTPWorker {
  enum Message: Sendable {
    case input(PushMachine.Input)
    case tls(TLSFiles)
  }

  private let loop: EventLoop
  private let transfers: HTTPTransfers
  private let logger: Logger
  private let statistics: PushStatistics
  private let report: @Sendable (PushReport) -> Void
  private var machine: PushMachine
  private var timer: EventLoop.TimerID?
  private var pace = TimerPace(pause: Limits.timerPause)
  private var actions: [PushMachine.Action] = []
  /// Services whose open circuit was logged.
  private var reported: Set<PushService> = []
  /// When the request began whose answer is being handled.
  private var answeredBegan: Instant?

  init(
    loop: EventLoop, transfers: HTTPTransfers, providers: PushProviders, random: RandomSource, logger: Logger,
    statistics: PushStatistics, report: @escaping @Sendable (PushReport) -> Void
  ) {
    (self.loop, self.transfers, self.logger, self.statistics, self.report) = (loop, transfers, logger, statistics, report)
    machine = PushMachine(providers: providers, random: random, unixSecondsAtZero: Self.unixSecondsAtZero())
  }

  func started() {
    timer = loop.addTimer("push") { [unowned self] in
      pace.fired(at: loop.now)
      feed(.timer)
    }
  }

  func handle(_ messages: [Message]) {
    machine.unixSecondsAtZero = Self.unixSecondsAtZero()
    for message in messages {
      switch message {
      case .input(let input): feed(input)
      case .tls(let files): transfers.replace(files)
      }
    }
  }

  func ended(_ rest: [Message]) {
    machine.abandon(at: loop.now, into: &actions)
    runActions()
    for case .input(.wake(let key, let target, _, _, _)) in rest {
      report(PushReport(key: key, target: target, outcome: .failed, reason: "stopped", attempts: 0))
    }
  }

  /// Read again at every batch: the wall clock may be stepped while pushes wait.
  private static func unixSecondsAtZero() -> Int64 {
    WallClock.nowMilliseconds() / 1_000 - MonotonicClock.now().nanoseconds / 1_000_000_000
  }

  private func feed(_ input: PushMachine.Input) {
    machine.handle(input, at: loop.now, into: &actions)
    runActions()
  }

  private func runActions() {
    // A transfer that cannot start completes at once, inside this loop.
    while !actions.isEmpty {
      let now = actions
      actions.removeAll(keepingCapacity: true)
      for action in now { perform(action) }
    }
    statistics.underWay.set(Int64(machine.pending))
    if let timer {
      loop.setTimer(timer, at: machine.pending == 0 ? nil : machine.nextDeadline.map(pace.due))
    }
    reportCircuits()
  }

  private func perform(_ action: PushMachine.Action) {
    switch action {
    case .send(let attempt, let request, let since):
      statistics.requests.increment()
      let began = loop.now
      transfers.start(request) { [unowned self] result in
        statistics.answerTime.record(loop.now - began)
        answeredBegan = began
        defer { answeredBegan = nil }
        switch result {
        case .success(let answer): feed(.answered(attempt, answer))
        case .failure(let failure): feed(.broke(attempt, reason: failure.text, isOfOld: failure.isOfOld))
        }
      }
      if let since { statistics.inviteToPush.record(MonotonicClock.now() - since) }
    case .retire(let connection): transfers.retire(connection, failedSince: answeredBegan)
    case .finished(let outcome):
      statistics.count(outcome)
      log(outcome)
      report(outcome)
    }
  }

  private func log(_ outcome: PushReport) {
    guard outcome.isFault || outcome.outcome == .tokenMismatch else { return }
    let target = outcome.target
    var metadata: Logger.Metadata = [
      "service": "\(target.service.rawValue)", "why": "\(outcome.reason)", "call": "\(outcome.key.call)",
      "user": "\(outcome.key.user)",
      "device": "\(outcome.key.device)",
    ]
    if target.service.provider.hasEnvironments { metadata["env"] = "\(target.environment.rawValue)" }
    if let advice = PushAdvice.text(outcome) { metadata["do"] = "\(advice)" }
    let text = outcome.outcome == .tokenMismatch ? "a push token is of another environment or app" : "push refused"
    logger.error("\(text)", metadata: metadata)
  }

  private func reportCircuits() {
    let open = Set(machine.openCircuits)
    guard open != reported else { return }
    for service in PushService.allCases { statistics.open[service].set(open.contains(service) ? 1 : 0) }
    for service in open.subtracting(reported) {
      logger.error("a push service does not answer", metadata: ["service": "\(service.rawValue)"])
    }
    for service in reported.subtracting(open) {
      logger.notice("a push service answers again", metadata: ["service": "\(service.rawValue)"])
    }
    reported = open
  }
}
