/** How a job stands. What an answer does not speak of is absent. */
export interface Job<Item = Record<string, any>> {
  job_id: string;
  status: "queued" | "processing" | "complete" | "failed" | "cancelled";
  scraper?: string;
  /** As in `2/3 items completed`. */
  progress?: string;
  /** Items found so far. */
  items?: number;
  created_at?: string;
  ended_at?: string | null;
  expires_at?: string | null;
  /** Its place in the queue, from 1, until it has ended. */
  position?: number;
  /** Seconds until it will have ended, as far as can be told. */
  estimated_time?: number;
  /** Seconds after which it is worth asking again. */
  poll_after?: number;
  /** Items by group; a plain list where there are no groups; null = too many for one answer: see `Shoal.items`. */
  results?: Record<string, Item[]> | Item[] | null;
  results_at?: string;
  /** Why it failed. */
  error?: string;
  /** Pages that could not be read, the first few. */
  errors?: Refusal[];
  /** URLs of a submission that will not be fetched. */
  refused?: Refusal[];
}

export interface Refusal {
  url: string;
  reason: string;
}

/** An item with the group and the page it came from. */
export interface RecordOfItem<Item = Record<string, any>> {
  group: string | null;
  url: string;
  item: Item;
}

/** What is wrong, as in RFC 9457. */
export interface ProblemDocument {
  type?: string;
  title: string;
  status?: number;
  detail: string;
  /** What is wrong with the input, field by field. */
  errors?: { field: string; problem: string }[];
  [more: string]: unknown;
}

export interface Trouble {
  /** A sentence for people. */
  reason: string;
  /** How often it was tried so far. */
  tries: number;
  /** Seconds until the next try. */
  seconds: number;
}

export interface Options {
  /** Of the gateway; absent = where the page came from. */
  url?: string;
  apiKey?: string;
  /** Seconds for which to try again when nobody answers, or only "not now"; absent = until aborted. */
  patience?: number;
}

export interface Trying {
  signal?: AbortSignal;
  /** Called before each new try, and with null as soon as there is an answer again. */
  onTrouble?: (trouble: Trouble | null) => void;
}

export interface Waiting extends Trying {
  /** Called with the job at first, when its progress changes and, while it is queued, as often as the hints say. */
  onNews?: (job: Job) => void;
}

/** A gateway, as one page or program uses it. */
export class Shoal {
  constructor(options?: Options);
  /** Submit a job. When this is done, the job is stored. */
  submit(scraper: string, input: unknown, options?: Trying & { idempotencyKey?: string }): Promise<Job>;
  /** The job when it is complete. Throws JobFailed if it fails or is cancelled. */
  wait(jobId: string, options?: Waiting): Promise<Job>;
  /** How a job stands now, with its results if it has ended. */
  result(jobId: string, options?: Trying): Promise<Job>;
  /** All items that a job has given so far, page by page. */
  items(jobId: string, options?: Trying): AsyncGenerator<RecordOfItem, void, void>;
  /** End a job. */
  cancel(jobId: string, options?: Trying): Promise<Job>;
}

/** The gateway will not do what it was asked for. The message is a sentence for people. */
export class Problem extends Error {
  constructor(status: number, document: ProblemDocument);
  status: number;
  title: string;
  detail: string;
  /** A word for programs, such as `bad-input`. */
  kind: string;
  document: ProblemDocument;
}

/** The job has ended, and is not complete. */
export class JobFailed extends Error {
  constructor(job: Job);
  job: Job;
}

/** Nobody answered, or only "not now", for as long as patience lasted. */
export class Unavailable extends Error {
  constructor(reason: string);
}

/** Whether nothing more will come of a job. */
export function hasEnded(job: Job): boolean;
