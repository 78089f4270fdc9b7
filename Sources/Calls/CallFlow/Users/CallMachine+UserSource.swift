import AppSessions
import CallModel
import JSONWebToken
import PhoneNumbers
import PushPolicy
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIP
import TrunklineSIPDialogs

/// Users and numbers that the operator's server knows (`users: [ { id: any, webhook: … } ]`): an INVITE, a `call.start` or a
/// program's call waits until the numbers and users that it names are known, and is then handled as if it had just come.
///
/// | the server's answer | and | then |
/// |---|---|---|
/// | a user | | its numbers leave their previous users, in one step; both answers are valid for `cache` |
/// | no such user | | the number is free, the user is refused; this is valid for `cache`, too |
/// | none | it was known before | the old answer stays valid; the query is repeated after `Limits.userRetry` |
/// | none | a number that is not known | 503: another node may know it |
/// | none | a user that is not known | the settings of `any` apply |
extension CallMachine {
  /// True: `input` waits.
  mutating func mustAsk(_ questions: [UserQuestion], before input: Input, _ step: inout Step) -> Bool {
    guard let source = routing.userSource, let question = unknown(questions, at: step.now) else { return false }
    switch userCache.wait(input, for: question) {
    case .ask: step.output.actions.append(.askUser(question, source.webhook))
    case .wait: break
    case .full: return false
    }
    return true
  }

  enum Asking { case no, waits, tooOften }

  /// The same for requests of an app, which come as fast as its socket is read: a user's calls wait no more often than
  /// `Limits.userQuestionBurst` and `userQuestionsPerSecond` allow.
  mutating func mustAsk(_ questions: [UserQuestion], of user: String, before input: Input, _ step: inout Step) -> Asking {
    guard let question = unknown(questions, at: step.now) else { return .no }
    guard userCache.mayWait(user, at: step.now) else { return .tooOften }
    return mustAsk([question], before: input, &step) ? .waits : .no
  }

  func refuseTooOften(_ token: RequestToken, _ caller: Refusal.Caller, _ step: inout Step) {
    let retry = Int(1_000 / Limits.userQuestionsPerSecond)
    step.answer(token, .err(Failure(.overload, msg: "too many calls to unknown numbers", retryMs: retry)))
    step.output.actions.append(.refused(Refusal(.userRate, .outgoing, detail: "questions", caller: caller)))
  }

  func isEmergency(_ to: Handle, by user: String) -> Bool {
    to.k == .phone && (try? routing.dialled(to.h, by: user))?.kind == .emergency
  }

  private func unknown(_ questions: [UserQuestion], at now: Instant) -> UserQuestion? {
    questions.first { !routing.directory.isSettled($0) && !userCache.isFresh($0, at: now) }
  }

  /// Queries the server for a user ahead of a call, when a device of the user connects.
  mutating func prefetch(_ user: String, _ step: inout Step) {
    let question = UserQuestion.user(user)
    guard let source = routing.userSource, !routing.directory.isSettled(question), !userCache.isFresh(question, at: step.now),
      userCache.expect(question)
    else { return }
    step.output.actions.append(.askUser(question, source.webhook))
  }

  mutating func userKnown(_ question: UserQuestion, _ answer: UserAnswer?, _ step: inout Step) {
    let held = step.now + (answer == nil ? Limits.userRetry : routing.userSource?.cache ?? .zero)
    userCache.hold(question, until: held, isAnswered: answer != nil, at: step.now)
    switch answer {
    case .found(let user, var grant):
      // if two answers name a number, the latest has it
      grant.issuedAt = step.wallNow
      keep(grant, of: user, step)
      userCache.hold(.user(user), until: held, at: step.now)
      for number in grant.numbers { userCache.hold(.number(number), until: held, at: step.now) }
    case .unknownUser: forget(question, &step)
    case nil: break
    }
    for input in userCache.removeWaiting(question) { dispatch(input, &step) }
  }

  private mutating func keep(_ grant: TokenGrant, of user: String, _ step: Step) {
    if (try? accept(grant, of: user, step)) != nil { return }
    // no room: drops all grants, which are queried again when they are needed
    changeGrants { $0 = UserGrants() }
    userCache.removeAnswers()
    _ = try? accept(grant, of: user, step)
  }

  private mutating func forget(_ question: UserQuestion, _ step: inout Step) {
    switch question {
    case .number(let number): changeGrants { $0.release(number) }
    case .user(let user):
      _ = changeGrants { $0.remove(user) }
      for device in presences[user] where device.info.onlyCall == nil {
        step.app(.refuse(device.session, Failure(.auth, msg: "no such user", fatal: true)))
      }
    }
  }

  func isUnanswered(_ questions: [UserQuestion]) -> Bool { questions.contains(where: userCache.isUnanswered) }

  /// The queries to answer before a caller's INVITE is handled.
  func questions(of invite: InboundInvite) -> [UserQuestion] {
    guard routing.asksForUsers(of: invite.trunk) else { return [] }
    return [.number(invite.to.number)]
  }

  /// The queries to answer before a call of a user: the user's own numbers and limits, and whether the other side is a user too.
  func questions(of user: String, calling to: Handle) -> [UserQuestion] {
    guard routing.userSource != nil else { return [] }
    var out = [UserQuestion.user(user)]
    guard routing.connectsUsers else { return out }
    if to.k == .phone {
      if let number = try? routing.dialled(to.h, by: user), number.kind != .emergency { out.append(.number(number.text)) }
    } else {
      out.append(.user(to.h))
    }
    return out
  }

  /// The caller gave up while the number was being queried: records a call that never rang.
  mutating func cancelledWhileAsking(_ leg: LegID, _ cause: ReasonValue?, _ step: inout Step) -> Bool {
    guard let invite = userCache.removeInvite(leg), let trunk = routing.trunk(invite.trunk) else { return false }
    let call = makeIncoming(leg, invite.normalised(by: trunk.numbers), over: trunk, by: nil, &step)
    admit(call, &step)
    change(call.id, &step) { $0.cancelled(cause, &$1) }
    return true
  }
}

extension UserDirectory {
  /// The configuration or an import has the answer: there is no query.
  func isSettled(_ question: UserQuestion) -> Bool {
    switch question {
    case .number(let number): isSettled(number: number)
    case .user(let user): isListed(user)
    }
  }
}

extension Routing {
  /// Calls of this trunk are for the user who has the number.
  func isForUsers(of trunk: String) -> Bool {
    trunk == Self.directTrunk || inbound.contains { $0.trunk == trunk && $0.target == .users }
  }

  fileprivate func asksForUsers(of trunk: String) -> Bool {
    userSource != nil && isForUsers(of: trunk)
  }
}
