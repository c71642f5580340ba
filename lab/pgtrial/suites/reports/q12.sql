-- Do slow carriers make urgent purchases late? Lines of a year that left in time and came late.
select l.carrier,
       sum(case when p.urgency in ('1 express', '2 high') then 1 else 0 end) as urgent,
       sum(case when p.urgency not in ('1 express', '2 high') then 1 else 0 end) as others
from lines l
join purchases p on p.purchase_id = l.purchase_id
where l.carrier in ('barge', 'ship')
  and l.shipped_on < l.promised_on
  and l.promised_on < l.received_on
  and l.received_on >= date '2022-01-01'
  and l.received_on < date '2023-01-01'
group by l.carrier
order by l.carrier;
