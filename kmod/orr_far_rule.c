// SPDX-License-Identifier: GPL-2.0
/*
 * A search is a tree of looks: the first is a process's, and each question leads to one more. A look's
 * questions say by which looks they came, so a driver knows when one comes back to a look of its own. What an
 * ancestor has asked is not asked again but taken as held: the ancestor waits for that very answer, and if it
 * turns out not to be held, so does everything that rests on it. What other branches have asked says nothing,
 * as their answers go to whoever asked there.
 *
 * Who has given an answer other than held is done with the search. One that is held is kept, so that
 * questions which come back find what they rest on. Nobody lets go of a search whose questions are being
 * sent.
 */
#include "orr_far_rule.h"

/* How many looks a path has. */
static u32 orr_far_depth(const u16 path[])
{
	u32 depth = 0;

	while (depth < ORR_FAR_PATH && path[depth])
		depth++;
	return depth;
}

/**
 * orr_far_mark - put the look's own mark behind those by which it came
 * @state: the look's
 * @mark: a number by chance; not 0
 *
 * Return: false: it came by too many.
 */
bool orr_far_mark(struct orr_far_state *state, u16 mark)
{
	u32 i = orr_far_depth(state->path);

	if (i == ORR_FAR_PATH)
		return false;
	state->path[i] = mark;
	/* Whoever has sent it may have left something there. */
	while (++i < ORR_FAR_PATH)
		state->path[i] = 0;
	state->marked = true;
	return true;
}

/**
 * orr_far_came_by - did a question come by that look of this driver?
 * @state: the question's
 * @other: the look's
 *
 * Return: whether.
 */
bool orr_far_came_by(const struct orr_far_state *state, const struct orr_far_state *other)
{
	const u32 depth = orr_far_depth(other->path);
	u32 i;

	if (other->id != state->id || !other->marked)
		return false;
	for (i = 0; i < depth; i++)
		if (state->path[i] != other->path[i])
			return false;
	return true;
}

/**
 * orr_far_is_same - do two questions ask for the same?
 * @one: a question
 * @other: another
 *
 * Return: whether.
 */
bool orr_far_is_same(const struct orr_far_ask *one, const struct orr_far_ask *other)
{
	return one->odev == other->odev && one->at == other->at && one->node == other->node &&
	       one->tag == other->tag && one->offset == other->offset && one->wanted == other->wanted;
}

/**
 * orr_far_sum - what the answers to its questions say so far
 * @state: the look's
 *
 * Return: ORR_FAR_OPEN, ORR_FAR_FREE or ORR_FAR_HELD.
 */
enum orr_far_answer orr_far_sum(const struct orr_far_state *state)
{
	bool held[ORR_FAR_WAITS];
	bool open = false;
	u32 i;

	for (i = 0; i < state->waits; i++)
		held[i] = state->held[i];
	for (i = 0; i < state->asks; i++) {
		const struct orr_far_ask *ask = &state->ask[i];

		if (ask->answer == ORR_FAR_FREE)
			return ORR_FAR_FREE;
		if (ask->answer == ORR_FAR_OPEN)
			open = true;
		if (ask->answer == ORR_FAR_HELD)
			held[ask->wait] = true;
	}
	if (open)
		return ORR_FAR_OPEN;
	/* What nobody has in his packets, a process may yet give. */
	for (i = 0; i < state->waits; i++)
		if (!held[i])
			return ORR_FAR_FREE;
	return ORR_FAR_HELD;
}

/**
 * orr_far_assume - what has been asked on the way here is not asked again
 * @state: a look's, not started yet
 * @other: any other of this driver
 */
void orr_far_assume(struct orr_far_state *state, const struct orr_far_state *other)
{
	u32 i, j;

	if (!orr_far_came_by(state, other))
		return;
	for (i = 0; i < state->asks; i++)
		for (j = 0; j < other->asks; j++)
			if (orr_far_is_same(&state->ask[i], &other->ask[j])) {
				state->ask[i].answer = ORR_FAR_HELD;
				state->ask[i].known = 0;
			}
}

/**
 * orr_far_start - a look is done, and its questions are about to be sent
 * @state: the look's, after orr_far_assume() of all others
 * @mark: for orr_far_mark(), which only who asks on needs
 */
void orr_far_start(struct orr_far_state *state, u16 mark)
{
	bool asks_on = false;
	u32 i;

	for (i = 0; i < state->asks; i++)
		asks_on |= state->ask[i].answer == ORR_FAR_OPEN;
	if (asks_on && !orr_far_mark(state, mark))
		state->answer = ORR_FAR_FREE;
	state->asking = true;
	orr_far_settle(state);
}

/**
 * orr_far_asks_now - is a question to be sent?
 * @state: a look's, started
 * @i: the question
 *
 * Return: whether, as something depends on its answer.
 */
bool orr_far_asks_now(const struct orr_far_state *state, u32 i)
{
	return state->answer == ORR_FAR_OPEN && state->ask[i].answer == ORR_FAR_OPEN;
}

/**
 * orr_far_pauses - is the other driver to be given time before a question?
 * @state: a look's, started
 * @i: the question
 *
 * Return: whether.
 */
bool orr_far_pauses(const struct orr_far_state *state, u32 i)
{
	u32 j, before = 0;

	for (j = 0; j < i; j++)
		before += state->ask[j].odev == state->ask[i].odev && state->ask[j].at == state->ask[i].at;
	return before && !(before % ORR_FAR_IN_A_ROW);
}

/**
 * orr_far_asked_all - its questions have been sent, as far as they were to be
 * @state: a look's, started
 */
void orr_far_asked_all(struct orr_far_state *state)
{
	state->asking = false;
}

/**
 * orr_far_find - to which of its questions is that an answer?
 * @state: a look's
 * @odev: by which card it came
 * @at: from whom
 * @tag: what he calls the memory
 * @number: of the question
 *
 * Return: the question, which has no answer yet, or NULL.
 */
struct orr_far_ask *orr_far_find(struct orr_far_state *state, const struct orr_device *odev, u32 at,
				 u32 tag, u16 number)
{
	u32 i;

	for (i = 0; i < state->asks; i++) {
		struct orr_far_ask *ask = &state->ask[i];

		if (ask->answer == ORR_FAR_OPEN && ask->number == number && ask->odev == odev &&
		    ask->at == at && ask->tag == tag)
			return ask;
	}
	return NULL;
}

/**
 * orr_far_take_hop - before the answer he tells of one more who waits there
 * @ask: the question
 *
 * Return: to be filled in, or NULL: there is no room.
 */
struct orr_far_wait *orr_far_take_hop(struct orr_far_ask *ask)
{
	return ask->known <= ORR_FAR_BEYOND ? &ask->there[ask->known++] : NULL;
}

/**
 * orr_far_take_answer - the answer to a question has come
 * @ask: the question, which has none yet; of @there the first's name is the caller's to fill in
 * @status: the answer, as it was said
 * @known: how many waits he has told of, as he says; 0: of none
 * @stamp: the same as long as nothing has moved there
 */
void orr_far_take_answer(struct orr_far_ask *ask, u32 status, u32 known, u64 stamp)
{
	ask->answer = status == ORR_FAR_HELD || status == ORR_FAR_NONE ? status : ORR_FAR_FREE;
	ask->stamp = stamp;
	if (!known)
		ask->known = 0;
	/* Some of it was lost, so it counts as if nobody had answered: whoever waits looks again. */
	if (ask->known != known)
		ask->answer = ORR_FAR_FREE;
}

/**
 * orr_far_settle - does the answer follow from the answers so far?
 * @state: a look's, whose answer it becomes
 */
void orr_far_settle(struct orr_far_state *state)
{
	if (state->answer == ORR_FAR_OPEN)
		state->answer = orr_far_sum(state);
}

/**
 * orr_far_next - what is to be done with a search?
 * @state: a look's, started
 *
 * Return: what. Who tells sets @state's told first.
 */
enum orr_far_step orr_far_next(const struct orr_far_state *state)
{
	if (state->answer == ORR_FAR_OPEN)
		return ORR_FAR_WAIT;
	if (!state->is_others)
		return ORR_FAR_END;
	if (state->asking || state->told)
		return ORR_FAR_WAIT;
	return state->answer == ORR_FAR_HELD ? ORR_FAR_TELL_AND_KEEP : ORR_FAR_TELL;
}

/**
 * orr_far_due_of - look at one more search: is its answer to be told, and before those of the others?
 * @due: those that were looked at; begins as zeros
 * @state: the search's, started
 * @told: as orr_far_due.told, of the driver that has asked
 *
 * First whose driver was told longest ago: who asks much is in nobody's way. Of one driver's the first that
 * is looked at.
 */
void orr_far_due_of(struct orr_far_due *due, const struct orr_far_state *state, u64 told)
{
	const enum orr_far_step step = orr_far_next(state);

	if (step != ORR_FAR_TELL && step != ORR_FAR_TELL_AND_KEEP)
		return;
	if (due->state && told >= due->told)
		return;
	due->state = state;
	due->told = told;
}

/**
 * orr_far_has_room - is one more question of another driver taken?
 * @kept: questions of all that were not answered yet
 * @kept_of_one: of them those of this one
 *
 * Return: whether. What was answered does not count: it goes after a while, and there is one a look.
 */
bool orr_far_has_room(u32 kept, u32 kept_of_one)
{
	return kept < ORR_FAR_KEPT && kept_of_one < ORR_FAR_KEPT_OF_ONE;
}
