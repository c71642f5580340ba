-- By urgency, how many purchases of a quarter had a line that came later than promised?
select p.urgency, count(*) as late_purchases
from purchases p
where p.purchased_on >= date '2022-04-01'
  and p.purchased_on < date '2022-07-01'
  and exists (
      select 1
      from lines l
      where l.purchase_id = p.purchase_id
        and l.received_on > l.promised_on
  )
group by p.urgency
order by p.urgency;
