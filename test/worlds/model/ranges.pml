/*-------------------------------------------------------------------------
 *
 * ranges.pml
 *	  Servers, a registry and its standby: who gives out which number of a
 *	  sequence, as a model of which Spin explores all sequences of actions.
 *
 * The registry executes a call in one action, as the locks of get_ranges() make
 * it; the commit is durable in a second one, and only then is there an answer.  A
 * crash between the two undoes the call.  A call can be given up, and arrive late;
 * an answer can be lost.  What a server does with an answer is one action, as its
 * lock makes it, and so is giving out a number.
 *
 * A client is one life of a server's memory.  A server that crashes begins as
 * another one, and knows only its receipt and the greatest number of its rows, as does
 * a copy of a server of those at some time before.  One whose worker is shut down returns its ranges, and is another client, too.  The
 * registry learns of that by the data directory, and when the life began.  One
 * that is resumed from a snapshot of its memory is a twin.  It may repeat what was
 * held when the snapshot was taken, but nothing else.
 *
 * The registry can be replaced by its standby, which has what was committed at some
 * time before.  It notices that, or the receipt of a server proves it.  Then it stops, as it
 * does when an administrator wants it, who resumes it: when all servers have reported what
 * they were granted, or with a skip, above all that was ever granted.
 *
 * No number is given out twice, but one that was granted by a registry that had lost
 * commits, before it stopped, and before each server had called it; none that a floor has
 * settled is given out after that, but by a server without whose report the registry was
 * resumed, until it has an answer with numbers again; those of a server rise.  The
 * registry stops by itself only if it has lost commits.
 *
 * script/tests/model has the sizes and the list of seeded bugs.
 *
 * test/worlds/model/ranges.pml
 *
 *-------------------------------------------------------------------------
 */
#ifndef SERVERS
#define SERVERS		2			/* the last one begins as a twin if TWINS */
#endif
#ifndef TWINS
#define TWINS		0
#endif
#ifndef CRASHES
#define CRASHES		0			/* of servers */
#endif
#ifndef CALLS
#define CALLS		4			/* of all servers */
#endif
#ifndef LOSSES
#define LOSSES		0			/* how often the registry is replaced by its standby */
#endif
#ifndef NOTICED
#define NOTICED		0			/* does it notice that by itself? */
#endif
#ifndef STOPS
#define STOPS		0			/* how often an administrator stops it */
#endif
#ifndef COPIES
#define COPIES		0			/* does the last server begin as a copy of the first? */
#endif
#ifndef FAULTS
#define FAULTS		1			/* of the registry, of answers, and of calls */
#endif
#ifndef LATE
#define LATE		FAULTS		/* how many there may be if they are of calls */
#endif
#ifndef FLOOR
#define FLOOR		0			/* what the first server settles, once; 0: nothing */
#endif
#ifndef FLOOR2
#define FLOOR2		0			/* the same of the second */
#endif
#ifndef REFUSALS
#define REFUSALS	0			/* how often the registry refuses a floor */
#endif
#ifndef RETURNS
#define RETURNS		0			/* how often a server returns its ranges */
#endif
#ifndef LAST
#define LAST		12			/* no number is above this */
#endif
#define CLIENTS		(SERVERS + CRASHES + RETURNS + LOSSES + COPIES)
#define SIZE		2			/* numbers of a range */
#define NOBODY		255

/* Seeded bugs. */
#define RANGE_KEPT			1	/* a server has its range after a crash */
#define NOT_GIVEN_UP		2	/* a server acknowledges a floor, and does nothing */
#define EARLY_ANSWER		3	/* an answer comes before its commit is durable */
#define GRANTED_AGAIN		4	/* what was granted last is granted again, though it arrived */
#define TWIN_ACCEPTED		5	/* a call does not look at the token */
#define LATEST_ONLY			6	/* a floor waits for the latest range of a server, no other */
#define LOSS_UNNOTICED		7	/* a registry that knows of a loss continues */
#define RESUMED_UNSEEN		8	/* it is resumed before all have reported */
#define HOLDER_LOST			9	/* ... and does not know who holds what it has lost */
#define NOT_WAITED			10	/* a floor does not wait for others */
#define NOT_CUT				11	/* a range is installed although a floor above it was heard */
#define COPY_ENDS			12	/* a later life of another directory ends a server */
#define SUPERSEDED_ENDS		13	/* a twin that is superseded ends the one that continues */
#define REFUSED_COUNTS		14	/* a floor that is refused is acknowledged */
#define RETURN_KEPT			15	/* a server returns ranges that it continues to use */
#define RETURN_NO_TOKEN		16	/* ... or another one's, without a current token */
#define CLIENT_REMOVED		17	/* ... after which the registry does not know it any more */
#define CONFIRMED_LAST		18	/* an answer is used before it is confirmed */
#define RECEIPT_LATE		19	/* an answer is used before its receipt is durable */
#define RECEIPT_UNSENT		20	/* a call is made without the receipt */
#define RECEIPT_IGNORED		21	/* a receipt that is not known is taken for one that is */
#define COUNTED_TWICE		22	/* a call is counted twice */
#define STOPPED_COUNTED		23	/* calls are counted while all is stopped */
#define INCARNATION_KEPT	24	/* the incarnation is not raised by a stop */
#define REPORT_EARLY		25	/* a report counts as complete after its first page */
#define KEYS_UNREAD			26	/* a server does not report its keys */
#define FLOOR_UNTOLD		27	/* ... or no floor that it heard */
#define AWAY_GRANTED		28	/* who was away is granted numbers without a report */
#define COPY_STOPS			29	/* only the last receipt of a server is known */
#define LATE_COUNTS			30	/* a late call acknowledges a floor while all is stopped */
#ifndef BUG
#define BUG			0
#endif

#define IF(c, a, b)	(((c) != 0) * (a) + ((c) == 0) * (b))
#define MIN(a, b)	IF((a) < (b), a, b)
#define MAX(a, b)	IF((a) > (b), a, b)

typedef Server {
	bool	runs;
	byte	client;
	byte	directory;
	byte	began;				/* crashes before this life */
	byte	confirmed;			/* token of the last answer */
	short	unconfirmed;		/* tokens of calls since then, as a set */
	byte	first, end;			/* the range in use, up to below its end */
	byte	next_first, next_end;	/* the one in reserve */
	byte	floor;				/* the greatest one, given up to */
	byte	heard;				/* ... that the registry took or told */
	byte	granted;			/* greatest number of this life */
	byte	receipt, receipt_of, receipt_in;	/* of the last answer: its number, client,
								 * and incarnation; they survive */
	byte	stored;				/* the greatest key of its rows, which survives */
	byte	kept_first, kept_end;	/* only for RANGE_KEPT */
	byte	given;				/* the last number given out */
	byte	settles;			/* what it wants to be settled */
	byte	late_receipt, late_of, late_in;	/* only for RECEIPT_LATE */

	/* The answer that is on its way. */
	bool	answered;
	byte	answer_token, answer_first, answer_end, answer_floor;
	byte	answer_receipt, answer_in;	/* number 0: none */
	bool	answer_settled, answer_refused, answer_superseded;
};

typedef Holder {
	bool	known;
	byte	token;				/* NOBODY: the client has ended */
	byte	granted_by;			/* token of the call that granted the latest range */
	bool	lost;				/* ... whose answer did not arrive */
	byte	lowest;				/* first of what it may give out; 0: nothing */
	byte	latest_first, latest_end;
	byte	acknowledged;
	byte	receipts;			/* how many it got */
	bool	reported;			/* since the registry stopped */
};

typedef Registry {
	byte	next, floor;
	byte	incarnation;
	bool	stopped;
	byte	evidence;			/* greatest number reported since it stopped */
	Holder	holder[CLIENTS];
};

Server server[SERVERS];
byte directory_of[CLIENTS];
byte began[CLIENTS];
Registry now_there;				/* what calls see */
Registry undo;					/* ... before the last one */
Registry standby;				/* what a standby has */
byte committing = NOBODY;		/* the server whose commit is not durable yet */

short used;						/* numbers given out */
short twice;					/* those that a twin may repeat */
byte goes_on = NOBODY;			/* which of both called first, ... */
bool both;						/* and did the other one call, too? */
byte settled;					/* the floor that was settled */
byte tokens, calls, faults, crashes, losses, stops, refusals, returns, copies, clients;
byte highest;					/* number that was ever granted, or floor */
bool has_lost;					/* the registry has lost commits, and was not resumed ... */
bool noted;						/* ... since it stopped for that */
byte unseen, undo_unseen;		/* ... and these servers have not called since then */
short exposed;					/* numbers that it granted meanwhile */
byte unreported;				/* servers without which it was resumed, and that it has
								 * not answered since then */
byte backup_receipt, backup_of, backup_in, backup_stored;

/* A call that arrives when its server has given it up. */
byte late_server = NOBODY;
byte late_client, late_confirmed, late_token, late_floor;
byte late_receipt, late_of, late_in;
short late_unconfirmed;
bool late_wants;
byte late_settles;

inline copy_registry(to, from)
{
	to.next = from.next;
	to.floor = from.floor;
	to.incarnation = from.incarnation;
	to.stopped = from.stopped;
	to.evidence = from.evidence;
	i = 0;
	do
	:: i < CLIENTS ->
		to.holder[i].known = from.holder[i].known;
		to.holder[i].token = from.holder[i].token;
		to.holder[i].granted_by = from.holder[i].granted_by;
		to.holder[i].lost = from.holder[i].lost;
		to.holder[i].lowest = from.holder[i].lowest;
		to.holder[i].latest_first = from.holder[i].latest_first;
		to.holder[i].latest_end = from.holder[i].latest_end;
		to.holder[i].acknowledged = from.holder[i].acknowledged;
		to.holder[i].receipts = from.holder[i].receipts;
		to.holder[i].reported = from.holder[i].reported;
		i++
	:: else -> break
	od;
	i = 0
}

#define H	now_there.holder[c]
#define HAS(set, token)	((token) != 0 && ((set) & (1 << (token))))

#define KNOWS(number, whose)	((number) == 0 || BUG == RECEIPT_IGNORED || \
							 (BUG == COPY_STOPS && now_there.holder[whose].receipts == (number)) || \
							 (BUG != COPY_STOPS && now_there.holder[whose].receipts >= (number)))

/* notice_range_loss(): what a receipt says. */
inline judge(number, whose, made_in)
{
	known = KNOWS(number, whose);
	if
	:: !known && made_in >= now_there.incarnation ->
		/* Nothing but a loss proves one; if it is not the first stop, it can do so twice. */
		assert(has_lost || (losses && losses + stops > 1));
		stop_registry(MAX(made_in, now_there.incarnation) + (BUG != INCARNATION_KEPT))
	:: else
	fi;
	must_report = (now_there.stopped || (!known && BUG != AWAY_GRANTED)) && !H.reported
}

inline stop_registry(later)
{
	printf("registry: stopped\n");
	now_there.stopped = 1;
	noted = 1;
	now_there.incarnation = later;
	unseen = 0;
	i = 0;
	do
	:: i < CLIENTS -> now_there.holder[i].reported = 0; i++
	:: else -> break
	od;
	i = 0
}

/* get_ranges(): c is the client, sure and unsure are its tokens, tok is the new one,
 * low the floor, and number, whose, and made_in are its receipt. */
inline execute(sure, unsure, tok, wishes, low, settling, number, whose, made_in)
{
	copy_registry(undo, now_there);
	first = 0;
	end = 0;
	waits = 0;
	refused = 0;
	judge(number, whose, made_in);
	if
	:: now_there.stopped || (must_report && (H.token == 0 || H.token == sure || HAS(unsure, H.token))) ->
		/* Only what the server reports counts. */
		if
		:: HAS(unsure, H.token) && H.granted_by == H.token -> H.lost = 1
		:: else
		fi;
		if
		:: H.token == 0 || H.token == sure || HAS(unsure, H.token) ->
			H.token = tok;
			H.receipts = H.receipts + (BUG == STOPPED_COUNTED)
		:: else
		fi;
		/* Who is superseded may have numbers again that it had given up. */
		H.acknowledged = MAX(H.acknowledged,
							 IF(H.token == tok || BUG == LATE_COUNTS, MIN(low, now_there.floor), 0));
		refused = 1
	:: !now_there.stopped && H.token && !(H.token == sure || HAS(unsure, H.token)) &&
	   BUG != TWIN_ACCEPTED ->
		refused = 2
	:: else ->
		if
		:: HAS(unsure, H.token) && H.granted_by == H.token -> H.lost = 1
		:: else
		fi;
		H.known = 1;
		H.token = tok;
		H.receipts = H.receipts + 1 + (BUG == COUNTED_TWICE);
		if
		:: known -> H.reported = 0
		:: else
		fi;
		if
		:: settling > now_there.floor && refusals < REFUSALS -> refusals++; refused = 3
		:: else ->
			now_there.floor = MAX(now_there.floor, settling);
			now_there.next = MAX(now_there.next, now_there.floor + 1);
			highest = MAX(highest, now_there.floor)
		fi;
		H.acknowledged = MAX(H.acknowledged,
							 IF(BUG == REFUSED_COUNTS, low, MIN(low, now_there.floor)));
		if
		:: refused == 3
		:: refused == 0 && wishes && (H.lost || BUG == GRANTED_AGAIN) &&
		   H.latest_end > now_there.floor + 1 ->
			first = MAX(H.latest_first, now_there.floor + 1);
			end = H.latest_end;
			H.granted_by = tok;
			H.lost = 0;
			H.latest_first = first
		:: refused == 0 && wishes && !((H.lost || BUG == GRANTED_AGAIN) &&
		   H.latest_end > now_there.floor + 1) &&
		   now_there.next + SIZE <= LAST ->
			first = now_there.next;
			end = first + SIZE;
			now_there.next = end;
			if
			:: BUG == LATEST_ONLY || H.lowest == 0 -> H.lowest = first
			:: BUG != LATEST_ONLY && H.lowest && !H.lost && H.latest_first -> H.lowest = H.latest_first
			:: else
			fi;
			/* A row that is new begins with the floor. */
			H.acknowledged = IF(H.latest_first || H.lowest != first,
								H.acknowledged, now_there.floor);
			H.granted_by = tok;
			H.lost = 0;
			H.latest_first = first;
			H.latest_end = end
		:: else
		fi;
		if
		:: end ->
			highest = MAX(highest, end - 1);
			exposed = exposed | IF(unseen, (1 << end) - (1 << first), 0)
		:: else
		fi;
		/* Who may give out lower numbers? */
		i = 0;
		do
		:: i < CLIENTS ->
			waits = waits || (i != c && now_there.holder[i].lowest &&
							  now_there.holder[i].lowest <= low &&
							  now_there.holder[i].acknowledged < low);
			i++
		:: else -> break
		od;
		i = 0
	fi
}

inline answer(s, tok)
{
	server[s].answered = 1;
	server[s].answer_token = IF(refused == 0 || refused == 3, tok, 0);
	server[s].answer_first = first;
	server[s].answer_end = end;
	server[s].answer_floor = IF(refused == 0 || refused == 3, now_there.floor, 0);
	server[s].answer_refused = refused == 3;
	server[s].answer_settled = refused == 0 && settles && (!waits || BUG == NOT_WAITED);
	server[s].answer_superseded = refused == 2;
	server[s].answer_receipt = IF(refused == 0 || refused == 3, H.receipts / (1 + (BUG == COUNTED_TWICE)), 0);
	server[s].answer_in = IF(refused == 0 || refused == 3, now_there.incarnation, 0);
	/* While it is stopped, the token counts all the same. */
	if
	:: refused == 1 && H.token == tok -> server[s].answer_token = tok
	:: else
	fi
}

inline forget_answer(s)
{
	server[s].answered = 0;
	server[s].answer_token = 0;
	server[s].answer_first = 0;
	server[s].answer_end = 0;
	server[s].answer_floor = 0;
	server[s].answer_receipt = 0;
	server[s].answer_in = 0;
	server[s].answer_settled = 0;
	server[s].answer_refused = 0;
	server[s].answer_superseded = 0
}

inline drop_ranges(s)
{
	server[s].first = 0; server[s].end = 0;
	server[s].next_first = 0; server[s].next_end = 0
}

inline new_life(s, crashed)
{
	server[s].late_receipt = 0;
	drop_ranges(s);
	forget_answer(s);
	server[s].began = server[s].began + IF(BUG == SUPERSEDED_ENDS, 1, crashed);
	server[s].client = clients;
	directory_of[clients] = IF(BUG == COPY_ENDS, 0, server[s].directory);
	began[clients] = server[s].began;
	clients++;
	server[s].confirmed = 0;
	server[s].unconfirmed = 0;
	server[s].floor = 0;
	server[s].heard = 0;
	server[s].granted = IF(crashed, 0, server[s].granted)
}

/* Give up all numbers up to a floor. */
inline give_up(s, to)
{
	server[s].floor = MAX(server[s].floor, to);
	if
	:: BUG == NOT_GIVEN_UP
	:: else ->
		server[s].first = MAX(server[s].first, IF(server[s].end, server[s].floor + 1, 0));
		server[s].next_first = MAX(server[s].next_first, IF(server[s].next_end, server[s].floor + 1, 0));
		if
		:: server[s].first >= server[s].end -> server[s].first = 0; server[s].end = 0
		:: else
		fi;
		if
		:: server[s].next_first >= server[s].next_end -> server[s].next_first = 0; server[s].next_end = 0
		:: else
		fi
	fi
}

inline install(s)
{
	first = server[s].answer_first;
	end = server[s].answer_end;
	if
	:: server[s].answer_refused ->
		/* What it wanted to be settled counts no longer. */
		server[s].settles = 0;
		server[s].floor = server[s].answer_floor
	:: else
	fi;
	give_up(s, server[s].answer_floor);
	server[s].heard = MAX(server[s].heard, server[s].answer_floor);
	if
	:: end && !server[s].end ->
		server[s].first = first; server[s].end = end
	:: end && server[s].end ->
		server[s].next_first = first; server[s].next_end = end
	:: else
	fi;
	/* A floor was heard while the answer was on its way. */
	if
	:: BUG != NOT_CUT -> give_up(s, 0)
	:: else
	fi;
	server[s].granted = MAX(server[s].granted, IF(end, end - 1, 0));
	server[s].kept_first = IF(BUG == RANGE_KEPT && end, first, server[s].kept_first);
	server[s].kept_end = IF(BUG == RANGE_KEPT && end, end, server[s].kept_end);
	if
	:: server[s].answer_settled ->
		settled = MAX(settled, server[s].settles);
		server[s].settles = 0
	:: else
	fi
}

/* Before anything of an answer is used. */
inline keep_receipt(s)
{
	unreported = unreported & ~IF(server[s].answer_receipt, 1 << s, 0);
	if
	:: server[s].answer_receipt && BUG == RECEIPT_LATE ->
		server[s].late_receipt = server[s].answer_receipt;
		server[s].late_of = server[s].client;
		server[s].late_in = server[s].answer_in
	:: server[s].answer_receipt && BUG != RECEIPT_LATE ->
		server[s].receipt = server[s].answer_receipt;
		server[s].receipt_of = server[s].client;
		server[s].receipt_in = server[s].answer_in
	:: else
	fi
}

proctype run_server(byte s)
{
	byte i, c, first, end, refused, n, floor, token;
	byte settles;
	bool waits, wants, known, must_report;

	do
	:: atomic { server[s].runs && server[s].end ->
			/* Give a number out. */
			n = server[s].first;
			if
			:: exposed & (1 << n)
			:: !(exposed & (1 << n)) && (twice & (1 << n)) -> assert(!both || s == goes_on)
			:: else ->
				assert(!(used & (1 << n)));
				assert(n > settled || (unreported & (1 << s)));
				assert(n > server[s].given)
			fi;
			used = used | (1 << n);
			server[s].given = MAX(n, server[s].given);
			server[s].stored = MAX(n, server[s].stored);
			server[s].first++;
			if
			:: server[s].first == server[s].end ->
				server[s].first = server[s].next_first;
				server[s].end = server[s].next_end;
				server[s].next_first = 0;
				server[s].next_end = 0
			:: else
			fi;
			n = 0
		}
	:: atomic { server[s].runs && !server[s].answered && !server[s].late_receipt && calls < CALLS &&
				committing == NOBODY ->
			calls++;
			tokens++;
			token = tokens;
			c = server[s].client;
			wants = server[s].next_end == 0;
			settles = server[s].settles;
			if
			:: settles -> give_up(s, settles)
			:: settles -> wants = 0; give_up(s, settles)
			:: else
			fi;
			floor = server[s].floor;
			if
			:: printf("server %d calls, token %d\n", s, token);
				undo_unseen = unseen;
				unseen = unseen & ~(1 << s);
				execute(server[s].confirmed, server[s].unconfirmed, token, wants, floor, settles,
						IF(BUG == RECEIPT_UNSENT, 0, server[s].receipt), server[s].receipt_of, server[s].receipt_in);
				server[s].unconfirmed = server[s].unconfirmed | (1 << token);
				answer(s, token);
				committing = s
			:: late_server == NOBODY && faults < LATE ->
				printf("server %d gives up a call, token %d\n", s, token);
				faults++;
				late_server = s; late_client = c; late_confirmed = server[s].confirmed;
				late_unconfirmed = server[s].unconfirmed; late_token = token;
				late_wants = wants; late_floor = floor;
				late_receipt = server[s].receipt; late_of = server[s].receipt_of; late_in = server[s].receipt_in;
				late_settles = settles;
				server[s].unconfirmed = server[s].unconfirmed | (1 << token)
			fi;
			first = 0; end = 0; refused = 0; floor = 0; token = 0; c = 0;
			waits = 0; wants = 0; settles = 0; known = 0; must_report = 0
		}
	:: atomic { server[s].answered && (committing != s || BUG == EARLY_ANSWER) ->
			if
			:: server[s].answer_superseded ->
				/* It begins anew, if it may. */
				if
				:: clients < CLIENTS -> new_life(s, 0)
				:: else -> drop_ranges(s); forget_answer(s); server[s].runs = 0
				fi
			:: !server[s].answer_superseded && server[s].answer_token ->
				if
				:: twice && server[s].client == 0 ->
					both = both || (goes_on != NOBODY && goes_on != s);
					goes_on = IF(goes_on == NOBODY, s, goes_on)
				:: else
				fi;
				keep_receipt(s);
				if
				:: install(s);
					server[s].confirmed = server[s].answer_token;
					server[s].unconfirmed = 0
				:: faults < FAULTS && !FLOOR ->
					/* The worker ends between the two.  It must not: with a floor, the
					 * registry would not wait for the range before the one that is lost. */
					printf("server %d: the worker ends\n", s);
					faults++;
					if
					:: BUG == CONFIRMED_LAST -> install(s)
					:: else ->
						server[s].confirmed = server[s].answer_token;
						server[s].unconfirmed = 0
					fi
				fi;
				forget_answer(s)
			:: !server[s].answer_superseded && !server[s].answer_token -> forget_answer(s)
			fi;
			first = 0; end = 0
		}
	:: atomic { LOSSES && server[s].runs && !server[s].answered && !server[s].late_receipt &&
				committing == NOBODY ->
			/* report_ranges(), if the registry wants it */
			c = server[s].client;
			judge(IF(BUG == RECEIPT_UNSENT, 0, server[s].receipt), server[s].receipt_of, server[s].receipt_in);
			unseen = unseen & ~(1 << s);
			n = MAX(MAX(server[s].granted, IF(BUG == KEYS_UNREAD, 0, server[s].stored)),
					IF(BUG == FLOOR_UNTOLD, 0, server[s].heard));
			if
			:: must_report ->
				printf("server %d reports %d\n", s, n);
				H.reported = 1;
				if
				:: BUG == REPORT_EARLY
				:: BUG != REPORT_EARLY && now_there.stopped -> now_there.evidence = MAX(now_there.evidence, n)
				:: else -> now_there.next = MAX(now_there.next, n + 1)
				fi;
				if
				:: n && !H.lowest && BUG != HOLDER_LOST -> H.known = 1; H.lowest = 1
				:: else
				fi
			:: else
			fi;
			n = 0; c = 0; known = 0; must_report = 0
		}
	:: atomic { server[s].answered && committing != s && faults < FAULTS ->
			printf("server %d: the answer is lost\n", s);
			faults++;
			forget_answer(s)
		}
	:: atomic { server[s].runs && crashes < CRASHES && clients < CLIENTS && committing != s ->
			printf("server %d: crash\n", s);
			crashes++;
			new_life(s, 1);
			if
			:: BUG == RANGE_KEPT -> server[s].first = server[s].kept_first; server[s].end = server[s].kept_end
			:: else
			fi
		}
	:: atomic { FLOOR && s == 0 && server[s].runs && !server[s].settles && settled < FLOOR ->
			server[s].settles = FLOOR
		}
	:: atomic { FLOOR2 && s == 1 && server[s].runs && !server[s].settles && settled < FLOOR2 ->
			server[s].settles = FLOOR2
		}
	:: atomic { server[s].runs && returns < RETURNS && clients < CLIENTS && committing == NOBODY &&
				!server[s].answered ->
			printf("server %d returns its ranges\n", s);
			returns++;
			c = server[s].client;
			if
			:: H.token && (H.token == server[s].confirmed || HAS(server[s].unconfirmed, H.token) ||
						   BUG == RETURN_NO_TOKEN) ->
				H.token = IF(BUG == CLIENT_REMOVED, 0, NOBODY);
				H.lowest = 0
			:: else
			fi;
			c = 0;
			if
			:: BUG == RETURN_KEPT ->
				first = server[s].first;
				end = server[s].end;
				new_life(s, 0);
				server[s].first = first;
				server[s].end = end;
				first = 0;
				end = 0
			:: else -> new_life(s, 0)
			fi
		}
	:: atomic { server[s].runs && committing == NOBODY && !now_there.stopped &&
				now_there.holder[server[s].client].lowest &&
				now_there.holder[server[s].client].acknowledged < now_there.floor &&
				server[s].floor < now_there.floor ->
			/* get_floors() */
			server[s].heard = now_there.floor;
			give_up(s, now_there.floor)
		}
	:: atomic { COPIES && s == 0 && copies == 0 ->
			backup_receipt = server[s].receipt; backup_of = server[s].receipt_of;
			backup_in = server[s].receipt_in; backup_stored = server[s].stored
		}
	:: atomic { COPIES && s == SERVERS - 1 && !server[s].runs && !copies && clients < CLIENTS ->
			printf("server %d is a copy of the first\n", s);
			copies++;
			server[s].runs = 1;
			server[s].directory = SERVERS;
			new_life(s, 1);
			server[s].receipt = backup_receipt; server[s].receipt_of = backup_of;
			server[s].receipt_in = backup_in; server[s].stored = backup_stored;
			server[s].given = backup_stored
		}
	:: atomic { server[s].late_receipt ->
			server[s].receipt = server[s].late_receipt; server[s].late_receipt = 0;
			server[s].receipt_of = server[s].late_of; server[s].receipt_in = server[s].late_in
		}
	:: atomic { TWINS && s == 0 && !server[SERVERS - 1].runs && !server[SERVERS - 1].client &&
				!server[s].answered && committing == NOBODY ->
			printf("server %d: twin\n", s);
			server[SERVERS - 1].runs = 1;
			server[SERVERS - 1].client = server[s].client;
			server[SERVERS - 1].began = server[s].began;
			server[SERVERS - 1].confirmed = server[s].confirmed;
			server[SERVERS - 1].unconfirmed = server[s].unconfirmed;
			server[SERVERS - 1].first = server[s].first;
			server[SERVERS - 1].end = server[s].end;
			server[SERVERS - 1].next_first = server[s].next_first;
			server[SERVERS - 1].next_end = server[s].next_end;
			server[SERVERS - 1].floor = server[s].floor;
			server[SERVERS - 1].heard = server[s].heard;
			server[SERVERS - 1].granted = server[s].granted;
			server[SERVERS - 1].given = server[s].given;
			twice = ((1 << server[s].end) - (1 << server[s].first)) |
				((1 << server[s].next_end) - (1 << server[s].next_first))
		}
	od
}

proctype run_registry()
{
	byte i, c, s, first, end, refused, settles;
	bool waits, all, known, must_report;

	do
	:: atomic { committing != NOBODY -> committing = NOBODY }
	:: atomic { committing != NOBODY && faults < FAULTS ->
			/* A crash before the commit is durable: there is no answer. */
			printf("registry: crash\n");
			faults++;
			copy_registry(now_there, undo);
			unseen = undo_unseen;
			if
			:: BUG != EARLY_ANSWER -> forget_answer(committing)
			:: else
			fi;
			committing = NOBODY
		}
	:: atomic { committing == NOBODY && late_server != NOBODY ->
			printf("registry: the call of server %d arrives, token %d\n", late_server, late_token);
			c = late_client;
			undo_unseen = unseen;
			execute(late_confirmed, late_unconfirmed, late_token, late_wants, late_floor, late_settles,
					late_receipt, late_of, late_in);
			late_server = NOBODY; late_client = 0; late_confirmed = 0; late_unconfirmed = 0;
			late_token = 0; late_wants = 0; late_floor = 0; late_settles = 0;
			late_receipt = 0; late_of = 0; late_in = 0;
			first = 0; end = 0; refused = 0; waits = 0; c = 0; known = 0; must_report = 0
		}
	:: atomic { losses < LOSSES && committing == NOBODY -> copy_registry(standby, now_there) }
	:: atomic { losses < LOSSES && committing == NOBODY ->
			printf("registry: replaced by its standby\n");
			losses++;
			copy_registry(now_there, standby);
			has_lost = 1;
			noted = 0;
			if
			:: NOTICED && BUG != LOSS_UNNOTICED -> stop_registry(now_there.incarnation + 1)
			:: else -> unseen = IF(NOTICED, 0, (1 << SERVERS) - 1 - ((!server[SERVERS - 1].runs) << (SERVERS - 1)))
			fi
		}
	:: atomic { stops < STOPS && committing == NOBODY ->
			/* stop_ranges() */
			printf("registry: an administrator stops it\n");
			stops++;
			stop_registry(now_there.incarnation + 1)
		}
	:: atomic { now_there.stopped && committing == NOBODY ->
			/* resume_ranges(0), if each server has reported; or with a skip.  Calls are
			 * given up by then, so no answer from before is on its way. */
			do
			:: i < SERVERS ->
				known = 0;
				c = 0;
				do
				:: c < CLIENTS ->
					known = known || (H.reported && directory_of[c] == server[i].directory);
					c++
				:: else -> break
				od;
				s = s | ((!known && server[i].runs) << i);
				waits = waits || server[i].answered;
				i++
			:: else -> break
			od;
			if
			:: !waits ->
				printf("registry: resumed, without %d\n", s);
				unreported = unreported | IF(has_lost, s, 0);
				now_there.next = MAX(MAX(now_there.next, now_there.evidence + 1),
									 IF(!s || BUG == RESUMED_UNSEEN, 0, highest + 1));
				now_there.stopped = 0;
				now_there.evidence = 0;
				has_lost = has_lost && !noted
			:: else
			fi;
			i = 0; c = 0; s = 0; known = 0; waits = 0
		}
	:: atomic { (crashes || BUG == SUPERSEDED_ENDS) && committing == NOBODY ->
			/* Of one directory, a later life ends those before it. */
			c = 0;
			do
			:: c < CLIENTS ->
				i = 0;
				do
				:: i < CLIENTS ->
					all = all || (now_there.holder[i].known &&
								  directory_of[i] == directory_of[c] && began[i] > began[c]);
					i++
				:: else -> break
				od;
				i = 0;
				if
				:: all && H.token -> H.token = NOBODY; H.lowest = 0
				:: else
				fi;
				all = 0;
				c++
			:: else -> break
			od;
			c = 0
		}
	od
}

init
{
	byte i;

	atomic {
		now_there.next = 1;
		now_there.incarnation = 1;
		standby.incarnation = 1;
		standby.next = 1;
		undo.next = 1;
		do
		:: i < SERVERS ->
			server[i].runs = !((TWINS || COPIES) && i == SERVERS - 1);
			server[i].client = IF(TWINS && i == SERVERS - 1, 0, i);
			server[i].directory = server[i].client;
			directory_of[server[i].client] = IF(BUG == COPY_ENDS, 0, server[i].directory);
			clients = clients + server[i].runs;
			run run_server(i);
			i++
		:: else -> break
		od;
		i = 0;
		run run_registry()
	}
}
